// SPDX-License-Identifier: GPL-2.0-only
// The engine over IPv6, alone and beside IPv4.
#include "streams.h"

#include "ns3/bulk-send-application.h"
#include "ns3/csma-module.h"
#include "ns3/internet-apps-module.h"
#include "ns3/internet-module.h"

#include <set>

using namespace ns3;
using test::Network;
using test::NewSocket;
using test::Path;
using test::Receiver;
using test::RunFor;
using test::Sender;
using test::Service;
using test::Service6;

namespace {

constexpr const char* NS3 = "ns3::TcpSocketFactory";

Path Over(test::Families families, double loss = 0)
{
    return {"10Mbps", "10ms", loss, 100, families};
}

std::string Statistics(const Ptr<ns3::Socket>& socket)
{
    return DynamicCast<anabranch::Socket>(socket)->GetStatistics();
}

// The statistics of the connection of the first application on host 0.
std::string Statistics(const Network& network)
{
    return Statistics(DynamicCast<BulkSendApplication>(network.hosts.Get(0)->GetApplication(0))->GetSocket());
}

double MbitPerS(const test::Stream& stream)
{
    return stream.sink->GetTotalRx() * 8e-6 / stream.lastAtS;
}

size_t OpenSubflows(const std::string& statistics)
{
    return test::Count(statistics, "\"closed_at_ns\":null,\"congestion");
}

test::Stream& Start(Network& network, uint64_t bytes)
{
    anabranch::Install(network.hosts);
    return test::Send(network, bytes, anabranch::SOCKETS, anabranch::SOCKETS);
}

Ptr<Ipv6> Ipv6Of(const Ptr<Node>& node)
{
    return node->GetObject<Ipv6>();
}

Inet6SocketAddress Any6()
{
    return {Ipv6Address::GetAny(), test::PORT};
}

Inet6SocketAddress NameOf(const Ptr<ns3::Socket>& socket, int (ns3::Socket::*call)(Address&) const)
{
    Address name;
    EXPECT(((*socket).*call)(name) == 0);
    EXPECT(Inet6SocketAddress::IsMatchingType(name));
    return Inet6SocketAddress::ConvertFrom(name);
}

} // namespace

CASE(both_ways_with_ns3_tcp_over_ipv6)
{
    for (const bool checksums : {false, true}) {
        GlobalValue::Bind("ChecksumEnabled", BooleanValue(checksums));
        for (const auto& [from, to] : {std::pair(NS3, anabranch::SOCKETS), std::pair(anabranch::SOCKETS, NS3)}) {
            Network network{Over(test::IPV6, 0.005)};
            anabranch::Install(network.hosts.Get(from == NS3 ? 1 : 0));
            const test::Stream& stream = test::Send(network, 3'000'000, from, to);
            RunFor(60);
            EXPECT_OF(stream.sink->GetTotalRx(), ==, 3'000'000U);
            Simulator::Destroy();
        }
    }
}

CASE(two_paths_of_ipv6_carry_together)
{
    Network network{Over(test::IPV6), Over(test::IPV6)};
    const test::Stream& stream = Start(network, 0);
    RunFor(10);
    EXPECT(!network.hosts.Get(0)->GetObject<Ipv4>());
    EXPECT_OF(MbitPerS(stream), >, 17.0);
    EXPECT_OF(MbitPerS(stream), <, 20.0);
}

CASE(addresses_of_ipv6_belong_to_their_links_if_ns3_says_so)
{
    for (const bool isStrong : {true, false}) {
        Config::SetDefault("ns3::Ipv6L3Protocol::StrongEndSystemModel", BooleanValue(isStrong));
        Network network{Over(test::IPV6), Over(test::IPV6)};
        Start(network, 0);
        RunFor(5);
        EXPECT_OF(test::Count(Statistics(network), "\"established_at_ns\":null"), ==, isStrong ? 2U : 0U);
        EXPECT_OF(OpenSubflows(Statistics(network)), ==, 4U);
        Simulator::Destroy();
    }
}

CASE(a_path_of_each_family_carry_together)
{
    for (const auto& [first, second] : {std::pair(test::IPV4, test::IPV6), std::pair(test::IPV6, test::IPV4)}) {
        Network network{Over(first), Over(second)};
        const test::Stream& stream = Start(network, 0);
        RunFor(10);
        EXPECT_OF(OpenSubflows(Statistics(network)), ==, 2U);
        EXPECT_OF(MbitPerS(stream), >, 17.0);
        EXPECT_OF(MbitPerS(stream), <, 20.0);
        Simulator::Destroy();
    }
}

CASE(a_path_of_ipv6_that_goes_down_is_left_and_used_again)
{
    // ns-3 ends the program when it asks again for routers on an interface that has gone down.
    Config::SetDefault("ns3::Icmpv6L4Protocol::RsMaxRetransmissionCount", UintegerValue(1));
    Network network{Over(test::IPV6), Over(test::IPV6)};
    const test::Stream& stream = Start(network, 0);
    uint64_t atCut = 0, atMend = 0;
    Simulator::Schedule(Seconds(5), [&] { network.Cut(0), atCut = stream.sink->GetTotalRx(); });
    Simulator::Schedule(Seconds(10), [&] { network.Mend(0), atMend = stream.sink->GetTotalRx(); });
    RunFor(20);
    // One path carries 6 MB in 5 s, two carry 24 MB in 10 s.
    EXPECT_OF(atMend - atCut, >, 5'000'000U);
    EXPECT_OF(atMend - atCut, <, 7'000'000U);
    EXPECT_OF(stream.sink->GetTotalRx() - atMend, >, 19'000'000U);
}

CASE(a_backup_of_ipv6_carries_nothing)
{
    Network network{Over(test::IPV4), Over(test::IPV6)};
    anabranch::Install(network.hosts);
    anabranch::HostOf(network.hosts.Get(0))->SetBackup(network.Address6(0, 1));
    test::Send(network, 0, anabranch::SOCKETS, anabranch::SOCKETS);
    RunFor(5);
    EXPECT_OF(test::Count(Statistics(network), "\"backup\":true"), ==, 1U);
    EXPECT_OF(test::Count(Statistics(network), "\"sent_bytes\":0"), ==, 1U);
}

CASE(sockets_of_ipv6_have_names)
{
    Network network{Over(test::IPV6)};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(Any6());
    EXPECT(NameOf(receiver.socket, &ns3::Socket::GetSockName).GetIpv6().IsAny());
    Sender sender{NewSocket(network, 0), 10'000};
    EXPECT(sender.socket->Bind(Inet6SocketAddress(network.Address6(0, 0), 4711)) == 0);
    sender.Connect(Service6(network));
    RunFor(60);
    EXPECT(receiver.isIntact);
    EXPECT_OF(receiver.received, ==, 10'000U);
    EXPECT_OF(receiver.ends + receiver.closes + sender.closes, ==, 3);
    // Also when the connection is over.
    EXPECT(NameOf(sender.socket, &ns3::Socket::GetSockName).GetIpv6() == network.Address6(0, 0));
    EXPECT_OF(NameOf(sender.socket, &ns3::Socket::GetSockName).GetPort(), ==, 4711);
    EXPECT(NameOf(sender.socket, &ns3::Socket::GetPeerName).GetIpv6() == network.Address6(1, 0));
    EXPECT(NameOf(receiver.open.front(), &ns3::Socket::GetPeerName).GetIpv6() == network.Address6(0, 0));
    EXPECT_OF(NameOf(receiver.open.front(), &ns3::Socket::GetPeerName).GetPort(), ==, 4711);
}

CASE(a_socket_of_all_addresses_of_ipv6_serves_ipv4)
{
    Network network{Over(test::BOTH)};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(Any6());
    Sender four{NewSocket(network, 0), 1000}, six{NewSocket(network, 0), 1000}, mapped{NewSocket(network, 0), 1000};
    const Ipv6Address mappedAddress = Ipv6Address::MakeIpv4MappedAddress(network.Address(1, 0));
    four.Connect(Service(network));
    Simulator::Schedule(Seconds(1), [&] { six.Connect(Service6(network)); });
    EXPECT(mapped.socket->Bind6() == 0);
    Simulator::Schedule(Seconds(2), [&] { mapped.Connect(Inet6SocketAddress(mappedAddress, test::PORT)); });
    RunFor(10);
    EXPECT_OF(receiver.accepted, ==, 3);
    EXPECT_OF(receiver.ends, ==, 3);
    const Ipv6Address expected = Ipv6Address::MakeIpv4MappedAddress(network.Address(0, 0));
    EXPECT(NameOf(receiver.open[0], &ns3::Socket::GetPeerName).GetIpv6() == expected);
    EXPECT(NameOf(receiver.open[0], &ns3::Socket::GetSockName).GetIpv6() == mappedAddress);
    EXPECT(NameOf(receiver.open[1], &ns3::Socket::GetPeerName).GetIpv6() == network.Address6(0, 0));
    EXPECT(NameOf(receiver.open[2], &ns3::Socket::GetPeerName).GetIpv6() == expected);
    receiver.socket->Close();
    Sender late{NewSocket(network, 0), 1000};
    late.Connect(Service(network));
    RunFor(10);
    EXPECT_OF(late.failures, ==, 1);
}

CASE(a_socket_of_ipv4_comes_before_one_of_both_families)
{
    for (const bool isFirst : {false, true}) {
        Network network{Over(test::BOTH)};
        anabranch::Install(network.hosts);
        Receiver four{NewSocket(network, 1)}, both{NewSocket(network, 1)};
        if (isFirst)
            four.Listen(test::PORT);
        both.Listen(Any6());
        if (!isFirst)
            four.Listen(test::PORT);
        const Ptr<ns3::Socket> third = NewSocket(network, 1);
        for (const Address& at : {Address(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)), Address(Any6())}) {
            EXPECT(third->Bind(at) == 0);
            EXPECT(third->Listen() == -1);
            EXPECT(third->GetErrno() == ns3::Socket::ERROR_ADDRINUSE);
        }
        Sender one{NewSocket(network, 0), 1000}, two{NewSocket(network, 0), 1000}, three{NewSocket(network, 0), 1000};
        one.Connect(Service(network));
        two.Connect(Service6(network));
        RunFor(5);
        EXPECT_OF(four.received, ==, 1000U);
        EXPECT_OF(both.received, ==, 1000U);
        four.socket->Close();
        three.Connect(Service(network));
        RunFor(5);
        EXPECT_OF(both.accepted, ==, 2);
        EXPECT_OF(four.accepted, ==, 1);
        Simulator::Destroy();
    }
}

CASE(a_socket_that_cannot_listen_takes_ipv4_from_no_other)
{
    Network network{Over(test::BOTH), Over(test::BOTH)};
    anabranch::Install(network.hosts);
    Receiver one{NewSocket(network, 1)}, both{NewSocket(network, 1)};
    both.Listen(Any6());
    const Address ofPath = InetSocketAddress(network.Address(1, 0), test::PORT);
    one.Listen(ofPath);
    const Ptr<ns3::Socket> late = NewSocket(network, 1);
    EXPECT(late->Bind(ofPath) == 0);
    EXPECT(late->Listen() == -1);
    EXPECT(late->GetErrno() == ns3::Socket::ERROR_ADDRINUSE);
    Sender first{NewSocket(network, 0), 1000}, second{NewSocket(network, 0), 1000};
    first.Connect(ofPath);
    second.Connect(InetSocketAddress(network.Address(1, 1), test::PORT));
    RunFor(5);
    EXPECT_OF(one.received, ==, 1000U);
    EXPECT_OF(both.received, ==, 1000U);
}

CASE(calls_with_addresses_of_ipv6_that_cannot_work_are_errors)
{
    Network network{Over(test::IPV4), Over(test::IPV6)};
    anabranch::Install(network.hosts);
    const auto errorOf = [](const Ptr<ns3::Socket>& socket, const Address& to) {
        EXPECT(socket->Connect(to) == -1);
        return socket->GetErrno();
    };
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    EXPECT(errorOf(socket, Inet6SocketAddress("2001:2::1", 80)) == ns3::Socket::ERROR_NOROUTETOHOST);
    EXPECT(errorOf(socket, Inet6SocketAddress("ff02::1", 80)) == ns3::Socket::ERROR_INVAL);
    EXPECT(errorOf(socket, Inet6SocketAddress("::", 80)) == ns3::Socket::ERROR_INVAL);
    EXPECT(errorOf(socket, InetSocketAddress("224.0.0.1", 80)) == ns3::Socket::ERROR_INVAL);
    EXPECT(errorOf(socket, Inet6SocketAddress(network.Address6(1, 1), 0)) == ns3::Socket::ERROR_INVAL);
    EXPECT(socket->Bind(Inet6SocketAddress("ff02::1", 80)) == -1);
    EXPECT(socket->Bind() == 0);
    EXPECT(errorOf(socket, Inet6SocketAddress(network.Address6(1, 1), 80)) == ns3::Socket::ERROR_AFNOSUPPORT);
    EXPECT(socket->Bind(Inet6SocketAddress(network.Address6(0, 1), 0)) == 0);
    EXPECT(errorOf(socket, Service(network)) == ns3::Socket::ERROR_AFNOSUPPORT);
    Sender refused{NewSocket(network, 0), 1000};
    refused.Connect(Inet6SocketAddress(network.Address6(1, 1), 80));
    RunFor(10);
    EXPECT_OF(refused.failures, ==, 1);
    EXPECT_OF(refused.closes + refused.errors, ==, 0);
}

CASE(subflows_of_the_other_family_are_added_by_hand)
{
    Config::SetDefault("anabranch::Socket::Settings", StringValue(R"({"path_manager": "manual"})"));
    Network network{Over(test::IPV4), Over(test::IPV6)};
    const test::Stream& stream = Start(network, 0);
    bool isAdded = false;
    Simulator::Schedule(Seconds(1), [&] {
        const auto source = DynamicCast<BulkSendApplication>(network.hosts.Get(0)->GetApplication(0));
        anabranch::Socket& socket = *DynamicCast<anabranch::Socket>(source->GetSocket());
        const Inet6SocketAddress to(network.Address6(1, 1), test::PORT);
        EXPECT(!socket.AddSubflow(network.Address(0, 0), to, false));
        EXPECT(!socket.AddSubflow(network.Address6(1, 1), to, false));
        isAdded = socket.AddSubflow(network.Address6(0, 1), to, false);
    });
    RunFor(10);
    EXPECT(isAdded);
    EXPECT_OF(OpenSubflows(Statistics(network)), ==, 2U);
    EXPECT_OF(MbitPerS(stream), >, 16.0);
}

namespace {

void NoteMarks(std::set<std::pair<uint32_t, uint32_t>>* seen, Ptr<const Packet> packet, Ptr<Ipv6>, uint32_t)
{
    Ipv6Header header;
    packet->PeekHeader(header);
    // The last packets of a connection come after its socket.
    if (packet->GetSize() > 100 && header.GetNextHeader() == 6)
        seen->emplace(header.GetTrafficClass() & 0xfc, header.GetHopLimit());
}

void NotePriority(std::set<uint32_t>* seen, const Ipv6Header&, Ptr<const Packet> packet, uint32_t)
{
    SocketPriorityTag tag;
    if (packet->GetSize() > 100 && packet->PeekPacketTag(tag))
        seen->insert(tag.GetPriority());
}

} // namespace

CASE(packets_of_ipv6_have_the_traffic_class_and_hop_limit_of_their_socket)
{
    Network network{Over(test::IPV6)};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(Any6());
    std::set<std::pair<uint32_t, uint32_t>> marks;
    std::set<uint32_t> priorities;
    Ipv6Of(network.hosts.Get(0))->TraceConnectWithoutContext("Tx", MakeBoundCallback(&NoteMarks, &marks));
    Ipv6Of(network.hosts.Get(0))
        ->TraceConnectWithoutContext("SendOutgoing", MakeBoundCallback(&NotePriority, &priorities));
    Sender sender{NewSocket(network, 0), 10'000};
    sender.socket->SetIpv6Tclass(0xb8);
    sender.socket->SetIpv6HopLimit(9);
    sender.socket->SetPriority(5);
    sender.Connect(Service6(network));
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 10'000U);
    EXPECT(marks == decltype(marks)({{0xb8, 9}}));
    EXPECT(priorities == std::set<uint32_t>{5});
}

namespace {

void CountFragments(uint32_t* count, Ptr<const Packet> packet, Ptr<Ipv6>, uint32_t)
{
    Ipv6Header header;
    packet->PeekHeader(header);
    *count += header.GetNextHeader() == Ipv6Header::IPV6_EXT_FRAGMENTATION;
}

} // namespace

CASE(senders_of_ipv6_split_packets_that_are_too_large)
{
    Network network{Over(test::IPV6, 0.01)};
    for (uint32_t host = 0; host < 2; host++)
        network.devices[0].Get(host)->SetMtu(1300);
    uint32_t fragments = 0;
    Ipv6Of(network.hosts.Get(1))->TraceConnectWithoutContext("Rx", MakeBoundCallback(&CountFragments, &fragments));
    const test::Stream& stream = Start(network, 500'000);
    RunFor(60);
    EXPECT_OF(stream.sink->GetTotalRx(), ==, 500'000U);
    EXPECT_OF(fragments, >, 600U);
}

namespace {

// Two hosts on one Ethernet.
struct Ethernet {
    explicit Ethernet(const NodeContainer& nodes) : hosts(nodes)
    {
        stack.Install(hosts);
        ethernet.SetChannelAttribute("DataRate", StringValue("10Mbps"));
        devices = ethernet.Install(hosts);
        for (uint32_t host = 0; host < hosts.GetN(); host++)
            Ipv6Of(hosts.Get(host))->SetUp(Ipv6Of(hosts.Get(host))->AddInterface(devices.Get(host)));
    }

    void Assign(uint32_t host, const char* address) const
    {
        const Ptr<Ipv6> ipv6 = Ipv6Of(hosts.Get(host));
        const int32_t interface = ipv6->GetInterfaceForDevice(devices.Get(host));
        ipv6->AddAddress(interface, Ipv6InterfaceAddress(Ipv6Address(address), Ipv6Prefix(64)));
    }

    Ptr<ns3::Socket> NewSocket(uint32_t host) const
    {
        return ns3::Socket::CreateSocket(hosts.Get(host), TypeId::LookupByName(anabranch::SOCKETS));
    }

    // Of the device, which has one in any case.
    Ipv6Address LinkLocal(uint32_t host) const
    {
        const Mac48Address station = Mac48Address::ConvertFrom(devices.Get(host)->GetAddress());
        return Ipv6Address::MakeAutoconfiguredLinkLocalAddress(station);
    }

    InternetStackHelper stack;
    CsmaHelper ethernet;
    NodeContainer hosts;
    NetDeviceContainer devices;
};

void NoteNoRoute(std::set<Ipv6Address>* seen, const Ipv6Header& header, Ptr<const Packet>)
{
    seen->insert(header.GetDestination());
}

} // namespace

CASE(packets_of_ipv6_without_a_route_are_reported)
{
    Ethernet net(NodeContainer(2));
    net.Assign(0, "2001:1::1");
    anabranch::Install(net.hosts);
    std::set<Ipv6Address> seen;
    anabranch::HostOf(net.hosts.Get(0))->TraceConnectWithoutContext("NoRoute6", MakeBoundCallback(&NoteNoRoute, &seen));
    const Ptr<ns3::Socket> socket = net.NewSocket(0);
    EXPECT(socket->Bind(Inet6SocketAddress("2001:1::1", 0)) == 0);
    EXPECT(socket->Connect(Inet6SocketAddress("2001:2::1", 80)) == 0);
    RunFor(2);
    EXPECT(seen == std::set<Ipv6Address>{Ipv6Address("2001:2::1")});
}

CASE(segments_to_all_nodes_of_a_link_get_no_answer)
{
    Ethernet net(NodeContainer(2));
    net.Assign(0, "2001:1::1");
    anabranch::Install(net.hosts);
    std::set<Ipv6Address> seen;
    const Ptr<anabranch::Host> host = anabranch::HostOf(net.hosts.Get(0));
    host->TraceConnectWithoutContext("NoRoute6", MakeBoundCallback(&NoteNoRoute, &seen));
    TcpHeader syn;
    syn.SetFlags(TcpHeader::SYN);
    const Ptr<Packet> packet = Create<Packet>();
    packet->AddHeader(syn);
    Ipv6Header header;
    // No answer can leave from an address that is not the host's.
    for (const auto& [from, to] : {std::pair("2001:1::2", "ff02::1"), std::pair("2001:1::3", "2001:1::4")}) {
        header.SetSource(Ipv6Address(from));
        header.SetDestination(Ipv6Address(to));
        host->Receive(packet, header, nullptr);
    }
    RunFor(1);
    EXPECT(seen == std::set<Ipv6Address>{Ipv6Address("2001:1::3")});
}

CASE(a_next_hop_of_ipv6_goes_before_routes)
{
    NodeContainer nodes(3);
    Ethernet net(nodes);
    net.Assign(0, "2001:1::1");
    net.Assign(1, "2001:2::2");
    anabranch::Install(net.hosts);
    Receiver receiver{net.NewSocket(1)};
    receiver.Listen(Any6());
    const Ptr<Ipv6> back = Ipv6Of(nodes.Get(1));
    Ipv6StaticRoutingHelper().GetStaticRouting(back)->SetDefaultRoute(net.LinkLocal(0), 1);
    anabranch::HostOf(nodes.Get(0))->SetNextHop(Ipv6Address("2001:1::1"), net.LinkLocal(1));
    Sender sender{net.NewSocket(0), 10'000};
    EXPECT(sender.socket->Bind(Inet6SocketAddress("2001:1::1", 0)) == 0);
    sender.Connect(Inet6SocketAddress("2001:2::2", test::PORT));
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 10'000U);
}

CASE(a_link_local_address_connects_on_its_link_and_is_told_to_nobody)
{
    Ethernet net(NodeContainer(2));
    net.Assign(0, "2001:1::1");
    net.Assign(1, "2001:1::2");
    anabranch::Install(net.hosts);
    Receiver receiver{net.NewSocket(1)};
    receiver.Listen(Any6());
    const Ptr<ns3::Socket> global = net.NewSocket(0), local = net.NewSocket(0);
    global->Connect(Inet6SocketAddress("2001:1::2", test::PORT));
    local->Connect(Inet6SocketAddress(net.LinkLocal(1), test::PORT));
    EXPECT(NameOf(local, &ns3::Socket::GetSockName).GetIpv6() == net.LinkLocal(0));
    // Beyond the time in which addresses are checked.
    for (double second : {1.0, 2.0, 3.0}) {
        Simulator::Schedule(Seconds(second), [&] { global->Send(test::Pattern(0, 1000)); });
        Simulator::Schedule(Seconds(second), [&] { local->Send(test::Pattern(0, 1000)); });
    }
    RunFor(5);
    EXPECT_OF(receiver.received, ==, 6000U);
    EXPECT_OF(test::Count(Statistics(global), "fe80:"), ==, 0U);
    // One subflow on the link and one between global addresses; none between the two kinds gets anywhere.
    EXPECT_OF(OpenSubflows(Statistics(local)), ==, 4U);
    EXPECT_OF(test::Count(Statistics(local), "\"established_at_ns\":null"), ==, 2U);
}

CASE(a_new_address_is_used_once_it_is_no_duplicate)
{
    Ethernet net(NodeContainer(3));
    net.Assign(0, "2001:1::1");
    net.Assign(1, "2001:1::2");
    anabranch::Install(net.hosts);
    Receiver receiver{net.NewSocket(1)};
    receiver.Listen(Any6());
    const Ptr<ns3::Socket> socket = net.NewSocket(0);
    Simulator::Schedule(Seconds(2), [&] { socket->Connect(Inet6SocketAddress("2001:1::2", test::PORT)); });
    Simulator::Schedule(Seconds(3), [&] { socket->Send(test::Pattern(0, 1000)); });
    RunFor(4);
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 1U);
    net.Assign(2, "2001:1::9");
    RunFor(2);
    net.Assign(0, "2001:1::9");
    net.Assign(0, "2001:1::8");
    RunFor(0.5);
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 1U);
    RunFor(10);
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 2U);
    EXPECT_OF(test::Count(Statistics(socket), "2001:1::8"), ==, 1U);
    EXPECT_OF(test::Count(Statistics(socket), "2001:1::9"), ==, 0U);
}

// The connection is idle and of IPv4, so nothing but the address itself can tell of it.
CASE(addresses_of_router_advertisements_are_used_as_they_come_and_left_as_they_go)
{
    NodeContainer nodes(2), router(1);
    Ethernet net(NodeContainer(nodes, router));
    Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(net.devices);
    net.Assign(2, "2001:1::1");
    net.Assign(1, "2001:1::2");
    Ipv6Of(router.Get(0))->SetForwarding(1, true);
    RadvdHelper adverts;
    adverts.AddAnnouncedPrefix(1, Ipv6Address("2001:1::"), 64);
    adverts.Install(router.Get(0)).Start(Seconds(5));
    anabranch::Install(nodes);
    Receiver receiver{net.NewSocket(1)};
    receiver.Listen(test::PORT);
    const Ptr<ns3::Socket> socket = net.NewSocket(0);
    Simulator::Schedule(Seconds(2), [&] { socket->Connect(InetSocketAddress("10.0.0.2", test::PORT)); });
    Simulator::Schedule(Seconds(3), [&] { socket->Send(test::Pattern(0, 1000)); });
    RunFor(4);
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 1U);
    RunFor(20);
    // To both addresses of the peer, which hears the router as well.
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 3U);
    const Mac48Address station = Mac48Address::ConvertFrom(net.devices.Get(0)->GetAddress());
    Ipv6Of(nodes.Get(0))->RemoveAddress(1, Ipv6Address::MakeAutoconfiguredAddress(station, Ipv6Address("2001:1::")));
    RunFor(1);
    EXPECT_OF(OpenSubflows(Statistics(socket)), ==, 1U);
}
