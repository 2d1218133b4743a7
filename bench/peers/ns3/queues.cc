// A queue of ns-3 (3.37 or later) before a line of fixed rate, fed with given packets: what `crates/path/tests/all/ns3.rs`
// compares the project's queues with. No TCP and no device takes part.
//
//   g++ -O2 -std=c++17 queues.cc -o queues -lns3-traffic-control -lns3-network -lns3-core
//   ./queues < packets
//
// The first line of the input is a type and its attributes, "ns3::CoDelQueueDisc UseEcn=true ...", or defaults of other
// types as "ns3::CoDelQueueDisc::MinBytes=1501"; the second the line's
// nanoseconds a byte and the seed; each other one a packet: time of arrival in ns, bytes, flow, 1 if ECN-capable. For each
// packet in the order in which it left prints its number, "sent", "marked" or "dropped", and when in ns.
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <sstream>

using namespace ns3;

class Item : public QueueDiscItem
{
  public:
    Item(uint32_t number, uint32_t bytes, uint32_t flow, bool ecn)
        : QueueDiscItem(Create<Packet>(bytes), Address(), 0),
          number(number),
          flow(flow),
          ecn(ecn)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        marked = ecn;
        return ecn;
    }

    uint32_t Hash(uint32_t) const override
    {
        return flow;
    }

    const uint32_t number;
    const uint32_t flow;
    const bool ecn;
    bool marked = false;
};

static Ptr<QueueDisc> queue;
static uint64_t nanosAByte;
static bool busy = false;

static void
Print(const Item& item, const char* what)
{
    std::cout << item.number << " " << what << " " << Simulator::Now().GetNanoSeconds() << "\n";
}

static void
Dropped(Ptr<const QueueDiscItem> item)
{
    Print(static_cast<const Item&>(*item), "dropped");
}

static void
Send()
{
    auto item = queue->Dequeue();
    busy = item != nullptr;
    if (busy)
    {
        const auto& sent = static_cast<const Item&>(*item);
        Print(sent, sent.marked ? "marked" : "sent");
        Simulator::Schedule(NanoSeconds(nanosAByte * sent.GetSize()), &Send);
    }
}

static void
Arrive(Ptr<Item> item)
{
    queue->Enqueue(item);
    if (!busy)
    {
        Send();
    }
}

int
main()
{
    std::string line, type, attribute;
    std::getline(std::cin, line);
    std::istringstream described(line);
    described >> type;
    ObjectFactory factory;
    factory.SetTypeId(type);
    while (described >> attribute)
    {
        const auto at = attribute.find('=');
        const std::string name = attribute.substr(0, at);
        const StringValue value(attribute.substr(at + 1));
        if (name.find("::") == std::string::npos)
        {
            factory.Set(name, value);
        }
        else
        {
            Config::SetDefault(name, value);
        }
    }
    uint32_t seed;
    std::cin >> nanosAByte >> seed;
    RngSeedManager::SetSeed(seed);
    queue = factory.Create<QueueDisc>();
    if (auto flows = DynamicCast<FqCoDelQueueDisc>(queue))
    {
        // Without a device its quantum is 0, and it would turn in circles.
        flows->SetQuantum(1514);
    }
    queue->Initialize();
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    uint64_t at = 0;
    uint32_t bytes, flow, ecn;
    for (uint32_t number = 0; std::cin >> at >> bytes >> flow >> ecn; number++)
    {
        Simulator::Schedule(NanoSeconds(at), &Arrive, Create<Item>(number, bytes, flow, ecn));
    }
    // PIE's timer goes on for ever.
    Simulator::Stop(NanoSeconds(at) + Seconds(10));
    Simulator::Run();
    queue->Dispose();
    Simulator::Destroy();
}
