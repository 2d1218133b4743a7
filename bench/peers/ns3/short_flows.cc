// Short flows next to a download in FQ-CoDel, with ns-3 3.37's TCP: bytes 43,800, 10 Mbit/s, RTT 40 ms, load 0.5.
//
//   g++ -O2 -std=c++17 short_flows.cc -o short_flows -lns3-applications -lns3-internet -lns3-point-to-point \
//       -lns3-traffic-control -lns3-network -lns3-core
//   ./short_flows --iw=30 --rto=1000
//
// Prints the time from the sender's SYN to the last byte, timeouts and fast recoveries of each short flow; on stderr the download.
// With ns-3's shortest timeout of 1 s: download 2.9 Mbit/s, 57% of the short flows lose a segment, 9% time out. firstflight without
// RACK and probes (bench/scenarios/short_flows.toml): 3.0 Mbit/s, 54%, 4%. With 200 ms ns-3's download stays in timeouts (960 in
// 240 s, 0.25 Mbit/s), so that the short flows have the link to themselves: 18%, 2%.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <fstream>
#include <iostream>
#include <map>
using namespace ns3;
struct Flow { double start; double end = -1; uint64_t got = 0; uint32_t rtos = 0; uint32_t recoveries = 0; };
static std::map<uint16_t, Flow> flows;
static uint64_t wanted = 43800;
static void Rx(uint16_t port, Ptr<const Packet> p, const Address&) {
  Flow& f = flows[port]; f.got += p->GetSize();
  if (f.got >= wanted && f.end < 0) f.end = Simulator::Now().GetSeconds();
}
static void Cong(uint16_t port, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
  if (now == TcpSocketState::CA_LOSS) flows[port].rtos++;
  if (now == TcpSocketState::CA_RECOVERY) flows[port].recoveries++;
}
static void Hook(uint16_t port, Ptr<BulkSendApplication> app) {
  Ptr<Socket> s = app->GetSocket();
  s->TraceConnectWithoutContext("CongState", MakeBoundCallback(&Cong, port));
}
int main(int argc, char** argv) {
  double rate = 10, delay = 20, until = 240, load = 0.5; uint32_t iw = 30; bool sack = true; std::string cc = "ns3::TcpLinuxReno"; uint32_t rtoMs = 200; uint32_t seed = 1; uint32_t buf = 4 << 20; bool down = true;
  CommandLine cmd; cmd.AddValue("iw", "", iw); cmd.AddValue("sack", "", sack); cmd.AddValue("cc", "", cc); cmd.AddValue("rto", "", rtoMs);
  cmd.AddValue("seed", "", seed); cmd.AddValue("buf", "", buf); cmd.AddValue("load", "", load); cmd.AddValue("bytes", "", wanted); cmd.AddValue("down", "", down); cmd.AddValue("until", "", until); cmd.AddValue("rate", "", rate); cmd.AddValue("delay", "", delay);
  cmd.Parse(argc, argv);
  RngSeedManager::SetSeed(seed);
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(iw));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buf));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(rtoMs)));
  Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(cc)));
  NodeContainer n; n.Create(3);
  PointToPointHelper fast, slow;
  fast.SetDeviceAttribute("DataRate", StringValue("1Gbps")); fast.SetChannelAttribute("Delay", StringValue("0.01ms"));
  slow.SetDeviceAttribute("DataRate", StringValue(std::to_string(rate) + "Mbps")); slow.SetChannelAttribute("Delay", StringValue(std::to_string(delay) + "ms"));
  slow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  auto d0 = fast.Install(n.Get(0), n.Get(1)); auto d1 = slow.Install(n.Get(1), n.Get(2));
  InternetStackHelper().Install(n);
  TrafficControlHelper tch; tch.SetRootQueueDisc("ns3::FqCoDelQueueDisc");
  tch.Install(d1.Get(0));
  Ipv4AddressHelper a; a.SetBase("10.0.0.0", "255.255.255.0"); a.Assign(d0); a.SetBase("10.0.1.0", "255.255.255.0"); auto i1 = a.Assign(d1);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  Ptr<ExponentialRandomVariable> gap = CreateObject<ExponentialRandomVariable>();
  double perFlow = wanted * 8.0 / (rate * 1e6); gap->SetAttribute("Mean", DoubleValue(perFlow / load));
  uint16_t port = 1000;
  auto add = [&](uint16_t p, double at, uint64_t bytes) {
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), p)); auto s = sink.Install(n.Get(2)); s.Start(Seconds(0));
    s.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Rx, p));
    BulkSendHelper b("ns3::TcpSocketFactory", InetSocketAddress(i1.GetAddress(1), p)); b.SetAttribute("MaxBytes", UintegerValue(bytes)); b.SetAttribute("SendSize", UintegerValue(bytes ? bytes : 65536));
    auto c = b.Install(n.Get(0)); c.Start(Seconds(at)); flows[p].start = at;
    Simulator::Schedule(Seconds(at + 1e-9), &Hook, p, c.Get(0)->GetObject<BulkSendApplication>());
  };
  if (down) add(999, 0.1, 0);
  for (double t = 5; t < until - 10 && port < 60000; t += gap->GetValue()) add(++port, t, wanted);
  Simulator::Stop(Seconds(until)); Simulator::Run();
  std::cerr << "download Mbit/s " << flows[999].got * 8 / until / 1e6 << " rtos " << flows[999].rtos << " recoveries " << flows[999].recoveries << "\n"; for (auto& [p, f] : flows) if (p > 1000 && f.end > 0) std::cout << f.end - f.start << " " << f.rtos << " " << f.recoveries << "\n";
  Simulator::Destroy();
}
