// SPDX-License-Identifier: GPL-2.0-only
// Relays that lend the address of their link.
#include "streams.h"

#include "../examples/phones.h"

#include "ns3/csma-module.h"

using namespace ns3;

namespace {

constexpr uint16_t OWNERS_PORT = 9000;

//   server, owner's peer ── core ── 8 Mbit/s ── relays ══ LAN ══ destination
struct Neighbours {
    explicit Neighbours(uint32_t count)
    {
        relays.Create(count);
        InternetStackHelper().Install(NodeContainer(destination, relays, core, NodeContainer(server, peer)));
        wired.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
        wired.SetChannelAttribute("Delay", StringValue("5ms"));
        serverAddress = Connect(NodeContainer(core, server), wired).GetAddress(1);
        peerAddress = Connect(NodeContainer(core, peer), wired).GetAddress(1);
        cellular.SetDeviceAttribute("DataRate", StringValue("8Mbps"));
        cellular.SetChannelAttribute("Delay", StringValue("15ms"));
        for (uint32_t relay = 0; relay < count; relay++) {
            uplinks.Add(cellular.Install(core.Get(0), relays.Get(relay)).Get(1));
            address.Assign(NetDeviceContainer(uplinks.Get(relay)->GetChannel()->GetDevice(0), uplinks.Get(relay)));
            address.NewNetwork();
        }
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        CsmaHelper lan;
        lan.SetChannelAttribute("DataRate", StringValue("100Mbps"));
        stations = lan.Install(NodeContainer(destination, relays));
        Ipv4AddressHelper("192.168.1.0", "255.255.255.0").Assign(stations);
        anabranch::Install(NodeContainer(server, destination));
        for (uint32_t relay = 0; relay < count; relay++)
            anabranch::Lend(uplinks.Get(relay), stations.Get(relay + 1), stations.Get(0));
    }

    Ipv4InterfaceContainer Connect(const NodeContainer& ends, PointToPointHelper& link)
    {
        const Ipv4InterfaceContainer addresses = address.Assign(link.Install(ends));
        address.NewNetwork();
        return addresses;
    }

    // Returns the rate of a download over the relays, Mbit/s.
    double Download(double seconds)
    {
        const download::Server sending(server.Get(0));
        download::Client receiving(destination.Get(0), serverAddress, Lent(0));
        receiving.Connect();
        Simulator::Stop(Seconds(seconds));
        Simulator::Run();
        return receiving.receivedBytes * 8e-6 / seconds;
    }

    Ipv4Address Lent(uint32_t relay) const
    {
        const Ptr<Ipv4> ipv4 = relays.Get(relay)->GetObject<Ipv4>();
        return ipv4->GetAddress(ipv4->GetInterfaceForDevice(uplinks.Get(relay)), 0).GetLocal();
    }

    NodeContainer destination{1}, relays, core{1}, server{1}, peer{1};
    PointToPointHelper wired, cellular;
    Ipv4AddressHelper address{"10.0.0.0", "255.255.255.0"};
    NetDeviceContainer uplinks, stations;
    Ipv4Address serverAddress, peerAddress;
};

} // namespace

CASE(links_of_two_relays_carry_together)
{
    EXPECT_OF(Neighbours(1).Download(10), <, 8.0);
    Simulator::Destroy();
    EXPECT_OF(Neighbours(2).Download(10), >, 12.0);
}

CASE(a_relay_passes_on_packets_that_were_split)
{
    Neighbours neighbours(1);
    for (uint32_t end = 0; end < 2; end++)
        neighbours.uplinks.Get(0)->GetChannel()->GetDevice(end)->SetMtu(1000);
    EXPECT_OF(neighbours.Download(10), >, 6.0);
}

CASE(owners_keep_their_own_tcp)
{
    Neighbours neighbours(1);
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), OWNERS_PORT));
    const auto owner = DynamicCast<PacketSink>(sink.Install(neighbours.relays.Get(0)).Get(0));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(neighbours.Lent(0), OWNERS_PORT));
    source.SetAttribute("MaxBytes", UintegerValue(1'000'000));
    source.Install(neighbours.peer);
    EXPECT_OF(neighbours.Download(10), >, 3.0);
    EXPECT_OF(owner->GetTotalRx(), ==, 1'000'000U);
}

namespace {

// Every octet of the data that the destination sends, and so both ports that a later fragment seems to have.
constexpr uint8_t OCTET = 0x17;
constexpr uint16_t SEEMING_PORT = OCTET << 8 | OCTET;

Ptr<PacketSink> SinkAt(const NodeContainer& node, uint16_t port)
{
    PacketSinkHelper sink(anabranch::SOCKETS, InetSocketAddress(Ipv4Address::GetAny(), port));
    return DynamicCast<PacketSink>(sink.Install(node).Get(0));
}

} // namespace

CASE(a_relay_does_not_take_data_of_later_fragments_for_ports)
{
    Neighbours neighbours(1);
    neighbours.stations.Get(0)->SetMtu(1000);
    const auto fromDestination = SinkAt(neighbours.server, test::PORT);
    const auto fromOwner = SinkAt(neighbours.server, SEEMING_PORT);
    const auto sender =
        ns3::Socket::CreateSocket(neighbours.destination.Get(0), TypeId::LookupByName(anabranch::SOCKETS));
    EXPECT(sender->Bind(InetSocketAddress(neighbours.Lent(0), 0)) == 0);
    EXPECT(sender->Connect(InetSocketAddress(neighbours.serverAddress, test::PORT)) == 0);
    const std::vector<uint8_t> octets(100'000, OCTET);
    EXPECT_OF(sender->Send(Create<Packet>(octets.data(), static_cast<uint32_t>(octets.size()))), ==, 100'000);
    const auto owner = ns3::Socket::CreateSocket(neighbours.relays.Get(0), TcpSocketFactory::GetTypeId());
    EXPECT(owner->Bind(InetSocketAddress(Ipv4Address::GetAny(), SEEMING_PORT)) == 0);
    Simulator::Schedule(Seconds(5), [&] {
        EXPECT(owner->Connect(InetSocketAddress(neighbours.serverAddress, SEEMING_PORT)) == 0);
        EXPECT_OF(owner->Send(Create<Packet>(1000)), ==, 1000);
    });
    test::RunFor(10);
    EXPECT_OF(fromDestination->GetTotalRx(), ==, 100'000U);
    EXPECT_OF(fromOwner->GetTotalRx(), ==, 1000U);
}

namespace {

//   server ── core ── 8 Mbit/s ── relays ══ LAN ══ destination, all of IPv6
struct Neighbours6 {
    explicit Neighbours6(uint32_t count)
    {
        relays.Create(count);
        InternetStackHelper stack;
        stack.SetIpv4StackInstall(false);
        stack.Install(NodeContainer(destination, relays, core, server));
        Connect(server.Get(0), "1Gbps");
        for (uint32_t relay = 0; relay < count; relay++)
            uplinks.Add(Connect(relays.Get(relay), "8Mbps"));
        CsmaHelper lan;
        lan.SetChannelAttribute("DataRate", StringValue("100Mbps"));
        stations = lan.Install(NodeContainer(destination, relays));
        // Link-local addresses are enough there.
        Ipv6AddressHelper().AssignWithoutAddress(stations);
        anabranch::Install(NodeContainer(server, destination));
        for (uint32_t relay = 0; relay < count; relay++)
            anabranch::Lend(uplinks.Get(relay), stations.Get(relay + 1), stations.Get(0));
    }

    // Returns the device of `node`, whose default route is by the core.
    Ptr<NetDevice> Connect(const Ptr<Node>& node, const char* rate)
    {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(rate));
        link.SetChannelAttribute("Delay", StringValue("15ms"));
        const NetDeviceContainer ends = link.Install(core.Get(0), node);
        Ipv6InterfaceContainer interfaces = address.Assign(ends);
        address.NewNetwork();
        interfaces.SetForwarding(0, true);
        interfaces.SetDefaultRouteInAllNodes(0);
        return ends.Get(1);
    }

    Ptr<ns3::Socket> NewSocket(const NodeContainer& node) const
    {
        return ns3::Socket::CreateSocket(node.Get(0), TypeId::LookupByName(anabranch::SOCKETS));
    }

    // The address behind the link-local one.
    Inet6SocketAddress AddressOf(const NodeContainer& node, uint16_t port) const
    {
        return {node.Get(0)->GetObject<Ipv6>()->GetAddress(1, 1).GetAddress(), port};
    }

    // Returns the rate of an upload that begins with the address of the first relay, Mbit/s.
    double Upload() const
    {
        test::Receiver receiver{NewSocket(server)};
        receiver.Listen(Inet6SocketAddress(Ipv6Address::GetAny(), test::PORT));
        test::Sender sender{NewSocket(destination), 1'000'000'000};
        EXPECT(sender.socket->Bind(AddressOf(relays, 0)) == 0);
        Simulator::Schedule(Seconds(2), [&] { sender.Connect(AddressOf(server, test::PORT)); });
        test::RunFor(12);
        EXPECT(receiver.isIntact);
        return receiver.received * 8e-6 / 10;
    }

    NodeContainer destination{1}, relays, core{1}, server{1};
    Ipv6AddressHelper address{Ipv6Address("2001:1::"), Ipv6Prefix(64)};
    NetDeviceContainer uplinks, stations;
};

} // namespace

CASE(relays_lend_addresses_of_ipv6)
{
    const double alone = Neighbours6(1).Upload();
    Simulator::Destroy();
    EXPECT_OF(alone, >, 6.0);
    EXPECT_OF(alone, <, 8.0);
    EXPECT_OF(Neighbours6(2).Upload(), >, 12.0);
}

CASE(owners_keep_their_own_tcp_of_ipv6)
{
    Neighbours6 neighbours(1);
    const Inet6SocketAddress at = neighbours.AddressOf(neighbours.relays, OWNERS_PORT);
    const auto owner = DynamicCast<PacketSink>(
        PacketSinkHelper("ns3::TcpSocketFactory", at).Install(neighbours.relays.Get(0)).Get(0));
    test::Sender sender{neighbours.NewSocket(neighbours.server), 1'000'000};
    Simulator::Schedule(Seconds(2), [&] { sender.Connect(at); });
    EXPECT_OF(neighbours.Upload(), >, 3.0);
    EXPECT_OF(owner->GetTotalRx(), ==, 1'000'000U);
}

CASE(phones_lend_their_lte_links)
{
    phones::Setup setup;
    setup.seconds = 2;
    setup.phones = 0;
    const double alone = phones::Run(setup);
    setup.phones = 1;
    EXPECT_OF(phones::Run(setup), >, 1.6 * alone);
}
