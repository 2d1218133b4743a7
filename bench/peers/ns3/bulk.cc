// The bulk work of `python -m bench` in ns-3 (3.37 or later): TCP flows over one bottleneck, no traces.
//
//   g++ -O2 -std=c++17 bulk.cc -o bulk -lns3-applications -lns3-internet -lns3-point-to-point
//       -lns3-traffic-control -lns3-network -lns3-core
//   ./bulk [--flows=10 --adelayLow=0.0005 --adelayHigh=0.0015 --stop=2 ...]
//
// Each flow has its own access link on either side; adelayLow and adelayHigh (s) are the delays of the
// first and the last flow's, the others lie evenly between. Prints one line of key=value pairs: packets
// and drops are those of the bottleneck's forward and reverse device, util is in per cent of bw.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>

using namespace ns3;

static uint64_t drops = 0;

static void
Drop(Ptr<const Packet>)
{
    drops++;
}

int
main(int argc, char** argv)
{
    uint32_t flows = 10;
    uint32_t buf = 4000;
    uint32_t wnd = 200;
    uint32_t iw = 10;
    uint32_t dack = 2;
    uint32_t mss = 1460;
    double stop = 2;
    double bw = 1e9;
    double delay = 0.010;
    double adelayLow = 0.001;
    double adelayHigh = 0.001;
    CommandLine cmd;
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("buf", "bottleneck queue, packets", buf);
    cmd.AddValue("wnd", "receive window, segments", wnd);
    cmd.AddValue("iw", "initial window, segments", iw);
    cmd.AddValue("dack", "segments an ACK", dack);
    cmd.AddValue("stop", "simulated time, s", stop);
    cmd.AddValue("bw", "bottleneck rate, bit/s", bw);
    cmd.AddValue("delay", "bottleneck delay, s", delay);
    cmd.AddValue("adelayLow", "access delay of the first flow, s", adelayLow);
    cmd.AddValue("adelayHigh", "access delay of the last flow, s", adelayHigh);
    cmd.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpLinuxReno")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(iw));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(wnd * mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * wnd * mss + 100000));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(dack));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(100)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer routers;
    NodeContainer left;
    NodeContainer right;
    routers.Create(2);
    left.Create(flows);
    right.Create(flows);
    InternetStackHelper stack;
    stack.InstallAll();

    auto link = [](double rate, double seconds, uint32_t packets) {
        PointToPointHelper p;
        p.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
        p.SetChannelAttribute("Delay", TimeValue(Seconds(seconds)));
        p.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(packets) + "p"));
        return p;
    };
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.252");
    TrafficControlHelper trafficControl;
    auto assign = [&](NetDeviceContainer d) {
        Ipv4InterfaceContainer i = addresses.Assign(d);
        trafficControl.Uninstall(d); // Assign() installs a queue disc; the plain device queue is wanted
        addresses.NewNetwork();
        return i;
    };
    NetDeviceContainer bottleneck = link(bw, delay, buf).Install(routers.Get(0), routers.Get(1));
    assign(bottleneck);
    double step = flows > 1 ? (adelayHigh - adelayLow) / (flows - 1) : 0;
    for (uint32_t i = 0; i < flows; i++)
    {
        PointToPointHelper access = link(1e10, adelayLow + i * step, 100000);
        assign(access.Install(left.Get(i), routers.Get(0)));
        Ipv4InterfaceContainer r = assign(access.Install(routers.Get(1), right.Get(i)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(r.GetAddress(1), 5000));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.SetAttribute("SendSize", UintegerValue(mss));
        // one flow a millisecond, so that not all slow starts coincide
        source.Install(left.Get(i)).Start(Seconds(i * 0.001));
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sink.Install(right.Get(i)).Start(Seconds(0));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    // With no queue disc a full device queue stops the device, and the drop is made (and traced) by the
    // traffic-control layer; the queue's own drop counter stays 0.
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop",
                                                                                 MakeCallback(&Drop));
    Simulator::Stop(Seconds(stop));
    Simulator::Run();
    auto forward = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue();
    auto reverse = DynamicCast<PointToPointNetDevice>(bottleneck.Get(1))->GetQueue();
    unsigned long long data = forward->GetTotalReceivedPackets() - forward->GetNPackets();
    unsigned long long acks = reverse->GetTotalReceivedPackets() - reverse->GetNPackets();
    std::printf("data_packets=%llu ack_packets=%llu drops=%llu util=%.4f\n",
                data,
                acks,
                (unsigned long long)(drops + forward->GetTotalDroppedPackets()),
                data * (mss + 40.0) * 8 / bw / stop * 100);
    Simulator::Destroy();
}
