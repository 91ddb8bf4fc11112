// SPDX-License-Identifier: GPL-2.0-only
// The socket calls of ns-3.
#include "streams.h"

#include "../module/subflows.h"

#include "ns3/error-model.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-net-device.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace ns3;
using test::Network;
using test::NewSocket;
using test::Receiver;
using test::RunFor;
using test::Sender;
using test::Service;

namespace {

anabranch::Socket& Ours(const Ptr<ns3::Socket>& socket)
{
    return *DynamicCast<anabranch::Socket>(socket);
}

// Loses some of the packets that host 1 receives, by their order.
void LoseAt(const Network& network, std::list<uint32_t> packets)
{
    const auto errors = CreateObject<ReceiveListErrorModel>();
    errors->SetList(packets);
    DynamicCast<PointToPointNetDevice>(network.devices[0].Get(1))->SetReceiveErrorModel(errors);
}

// Returns whether it ends the program.
bool Dies(void (*what)())
{
    const pid_t child = fork();
    if (child == 0) {
        std::fclose(stderr);
        what();
        std::_Exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && !WIFEXITED(status);
}

} // namespace

CASE(a_stream_arrives_octet_for_octet_and_ends_in_good_order)
{
    Network network{{"10Mbps", "10ms", 0.005}, {"5Mbps", "30ms", 0.005}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 2'000'000};
    sender.Connect(Service(network));
    RunFor(60);
    EXPECT_OF(receiver.received, ==, 2'000'000U);
    EXPECT(receiver.isIntact);
    EXPECT_OF(receiver.ends, ==, 1);
    EXPECT_OF(receiver.closes, ==, 1);
    EXPECT_OF(sender.closes, ==, 1);
    EXPECT_OF(sender.errors + receiver.errors + sender.failures, ==, 0);
    Address from;
    EXPECT(receiver.open.front()->GetPeerName(from) == 0);
    EXPECT(InetSocketAddress::ConvertFrom(from).GetIpv4() == network.Address(0, 0));
    const std::string statistics = DynamicCast<anabranch::Socket>(sender.socket)->GetStatistics();
    EXPECT(!statistics.empty());
}

CASE(a_closed_port_refuses)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    // The peer's engine begins with its first packet.
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(60);
    EXPECT_OF(sender.failures, ==, 1);
    EXPECT_OF(sender.closes + sender.errors, ==, 0);
}

CASE(a_refused_request_ends_with_a_reset)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.accepts = false;
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(60);
    EXPECT_OF(receiver.accepted, ==, 0);
    EXPECT_OF(sender.errors, ==, 1);
}

namespace {

// A peer without an engine, which writes segments octet by octet (RFC 9293 section 3.1, RFC 8684 section 3.1).
struct Peer {
    Ipv4Address address, host;
    Ptr<anabranch::Host> receiver;
    uint32_t answered = 0;
    std::vector<uint8_t> theirKey = {};

    void Note(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
    {
        const Ptr<Packet> segment = packet->Copy();
        Ipv4Header ip;
        segment->RemoveHeader(ip);
        std::vector<uint8_t> octets(segment->GetSize());
        segment->CopyData(octets.data(), segment->GetSize());
        const std::vector<uint8_t> capable = {30, 12, 1, 1};
        const auto found = std::search(octets.begin(), octets.end(), capable.begin(), capable.end());
        if (ip.GetDestination() != address || found == octets.end())
            return;
        theirKey.assign(found + 4, found + 12);
        answered = octets[4] << 24 | octets[5] << 16 | octets[6] << 8 | octets[7];
    }

    void Send(uint32_t sequence, uint8_t flags, const std::vector<uint8_t>& options) const
    {
        const uint32_t acked = answered == 0 ? 0 : answered + 1;
        std::vector<uint8_t> octets = {0x10, 0, test::PORT >> 8, test::PORT & 0xff};
        for (const uint32_t number : {sequence, acked})
            for (const int shift : {24, 16, 8, 0})
                octets.push_back(static_cast<uint8_t>(number >> shift));
        octets.push_back(static_cast<uint8_t>((20 + options.size()) / 4 << 4));
        // The window; the engine's place fills in the checksum; nothing is urgent.
        octets.insert(octets.end(), {flags, 0xff, 0xff, 0, 0, 0, 0});
        octets.insert(octets.end(), options.begin(), options.end());
        Ipv4Header header;
        header.SetSource(address);
        header.SetDestination(host);
        header.SetProtocol(6);
        header.SetTtl(64);
        header.SetPayloadSize(static_cast<uint16_t>(octets.size()));
        receiver->Receive(Create<Packet>(octets.data(), static_cast<uint32_t>(octets.size())), header, nullptr);
    }

    void Begin() const { Send(1000, 0x02, {30, 4, 1, 1}); }

    // Completes the handshake and ends the connection at once, with MP_FASTCLOSE in the same segment.
    void ConfirmAndEnd() const
    {
        std::vector<uint8_t> options = {30, 20, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8};
        options.insert(options.end(), theirKey.begin(), theirKey.end());
        options.insert(options.end(), {30, 12, 0x70, 0});
        options.insert(options.end(), theirKey.begin(), theirKey.end());
        Send(1001, 0x10, options);
    }
};

} // namespace

CASE(a_refused_connection_that_has_ended_already_frees_its_place)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    network.hosts.Get(0)->GetObject<Ipv4>()->SetAttribute("IpForward", BooleanValue(false));
    const auto engine = network.hosts.Get(1)->GetObject<anabranch::Host>();
    engine->SetAttribute("Settings", StringValue(R"({"connections_max": 1})"));
    Receiver receiver{NewSocket(network, 1)};
    receiver.accepts = false;
    receiver.Listen(test::PORT);
    Peer peer{"10.0.0.9", network.Address(1, 0), engine};
    network.hosts.Get(1)->GetObject<Ipv4>()->TraceConnectWithoutContext("Tx", MakeCallback(&Peer::Note, &peer));
    Simulator::Schedule(Seconds(1), &Peer::Begin, &peer);
    Simulator::Schedule(Seconds(2), &Peer::ConfirmAndEnd, &peer);
    RunFor(3);
    EXPECT_OF(peer.theirKey.size(), ==, 8U);
    EXPECT_OF(receiver.asked, ==, 1);
    receiver.accepts = true;
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 1000U);
}

CASE(two_hundred_connections_come_and_go)
{
    Network network{{"100Mbps", "5ms"}, {"100Mbps", "5ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    std::vector<Sender> senders;
    for (int number = 0; number < 200; number++)
        senders.push_back({NewSocket(network, 0), 10'000});
    for (size_t number = 0; number < senders.size(); number++)
        Simulator::Schedule(MilliSeconds(10 * number), &Sender::Connect, &senders[number], Address(Service(network)));
    RunFor(120);
    EXPECT_OF(receiver.received, ==, 2'000'000U);
    EXPECT_OF(receiver.ends, ==, 200);
    for (const Sender& sender : senders)
        EXPECT_OF(sender.closes, ==, 1);
}

CASE(calls_at_the_wrong_time_are_errors)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    EXPECT(socket->Send(Create<Packet>(10)) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_NOTCONN);
    EXPECT(!socket->Recv());
    EXPECT(socket->Bind(Mac48Address("00:00:00:00:00:01")) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_AFNOSUPPORT);
    EXPECT(socket->Connect(InetSocketAddress(Ipv4Address("192.0.2.1"), 80)) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_NOROUTETOHOST);
    EXPECT(socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
    EXPECT(socket->Listen() == 0);
    EXPECT(socket->Connect(Service(network)) == -1);
    const Ptr<ns3::Socket> other = NewSocket(network, 0);
    EXPECT(other->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
    EXPECT(other->Listen() == -1);
    EXPECT(other->GetErrno() == ns3::Socket::ERROR_ADDRINUSE);
    EXPECT(socket->Close() == 0);
    EXPECT(other->Listen() == 0);
}

CASE(addresses_where_nobody_can_be_are_errors_of_the_call)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    for (const char* nobody : {"255.255.255.255", "0.0.0.0", "224.0.0.1"}) {
        EXPECT(socket->Connect(InetSocketAddress(Ipv4Address(nobody), 80)) == -1);
        EXPECT(socket->GetErrno() == ns3::Socket::ERROR_INVAL);
    }
    EXPECT(socket->Connect(Service(network)) == 0);
    Simulator::Schedule(Seconds(0.5), [&] { socket->Send(test::Pattern(0, 1000)); });
    RunFor(2);
    for (const char* nobody : {"255.255.255.255", "0.0.0.0", "224.0.0.1"}) {
        const InetSocketAddress to(Ipv4Address(nobody), 80);
        EXPECT(!Ours(socket).AddSubflow(network.Address(0, 1), to, false));
        EXPECT(socket->GetErrno() == ns3::Socket::ERROR_INVAL);
    }
}

CASE(a_port_is_chosen_where_none_is_named)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    std::set<uint16_t> ports;
    std::vector<Ptr<ns3::Socket>> sockets;
    for (int number = 0; number < 3; number++) {
        sockets.push_back(NewSocket(network, 1));
        EXPECT(sockets.back()->Bind() == 0);
        EXPECT(sockets.back()->Listen() == 0);
        Address name;
        EXPECT(sockets.back()->GetSockName(name) == 0);
        ports.insert(InetSocketAddress::ConvertFrom(name).GetPort());
    }
    EXPECT_OF(ports.size(), ==, 3U);
    EXPECT_OF(*ports.begin(), >=, 49152);
    Sender sender{NewSocket(network, 0), 0};
    sender.Connect(InetSocketAddress(network.Address(1, 0), *ports.rbegin()));
    RunFor(1);
    EXPECT_OF(sender.failures, ==, 0);
}

// The third packet of the handshake is lost, so the first data open the connection and arrive before it is accepted.
CASE(data_that_open_a_connection_are_reported)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    LoseAt(network, {1});
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(60);
    EXPECT_OF(receiver.received, ==, 1000U);
    EXPECT_OF(receiver.ends, ==, 1);
}

namespace {

// As in ns-3's tcp-large-transfer: never sends more than there is room for, and so is never refused.
void FillRoom(uint64_t* left, Ptr<ns3::Socket> socket, uint32_t)
{
    while (*left > 0 && socket->GetTxAvailable() > 0) {
        const uint64_t bytes = std::min<uint64_t>({*left, 1040, socket->GetTxAvailable()});
        EXPECT_OF(socket->Send(Create<Packet>(static_cast<uint32_t>(bytes))), ==, static_cast<int>(bytes));
        *left -= bytes;
    }
    if (*left == 0)
        socket->Close();
}

} // namespace

CASE(applications_that_ask_for_room_hear_of_it)
{
    Network network{{"100Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    uint64_t left = 20'000'000;
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    socket->SetSendCallback(MakeBoundCallback(&FillRoom, &left));
    socket->Connect(Service(network));
    RunFor(60);
    EXPECT_OF(receiver.received, ==, 20'000'000U);
}

CASE(applications_hear_of_room_when_octets_leave_that_waited)
{
    // Less than a full segment, for which Nagle's algorithm would wait.
    const char* const settings = R"({"unsent_max_bytes": 1400, "nagle": false})";
    Config::SetDefault("anabranch::Socket::Settings", StringValue(settings));
    Network network{{"10Mbps", "50ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    uint64_t left = 2'000'000;
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    socket->SetSendCallback(MakeBoundCallback(&FillRoom, &left));
    socket->Connect(Service(network));
    RunFor(5);
    EXPECT_OF(receiver.received, ==, 2'000'000U);
}

CASE(calls_before_the_connection_is_open_are_done_then)
{
    for (const bool closes : {false, true}) {
        Network network{{"10Mbps", "10ms"}};
        anabranch::Install(network.hosts);
        Receiver receiver{NewSocket(network, 1)};
        receiver.Listen(test::PORT);
        const Ptr<ns3::Socket> socket = NewSocket(network, 0);
        EXPECT(socket->Connect(Service(network)) == 0);
        EXPECT_OF(socket->Send(test::Pattern(0, 500)), ==, 500);
        EXPECT((closes ? socket->Close() : socket->ShutdownSend()) == 0);
        RunFor(60);
        EXPECT_OF(receiver.received, ==, 500U);
        EXPECT_OF(receiver.ends, ==, 1);
        EXPECT_OF(receiver.errors, ==, 0);
        Simulator::Destroy();
    }
}

CASE(a_socket_whose_connection_was_refused_may_try_again)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(1);
    EXPECT_OF(sender.failures, ==, 1);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    sender.Connect(Service(network));
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 1000U);
}

namespace {

// Counts the windows that begin.
void CountFirst(int* first, uint16_t, uint64_t before, uint64_t)
{
    *first += before == 0;
}

} // namespace

CASE(each_attempt_to_connect_has_windows_of_its_own)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Sender sender{NewSocket(network, 0), 1000};
    int first = 0;
    EXPECT(sender.socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&CountFirst, &first)));
    sender.Connect(Service(network));
    RunFor(1);
    EXPECT_OF(first, ==, 1);
    sender.Connect(Service(network));
    RunFor(1);
    EXPECT_OF(sender.failures, ==, 2);
    EXPECT_OF(first, ==, 2);
}

CASE(sockets_outlive_the_simulation)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 50'000'000};
    sender.Connect(Service(network));
    RunFor(1);
    Simulator::Destroy();
    EXPECT(test::Number(Ours(sender.socket).GetStatistics(), "written_bytes") > 0);
    EXPECT_OF(sender.socket->GetTxAvailable(), ==, 0U);
    EXPECT(sender.socket->Send(Create<Packet>(10)) == -1);
    EXPECT(!sender.socket->Recv());
    EXPECT(sender.socket->Close() == 0);
    EXPECT(receiver.socket->Close() == 0);
}

CASE(monitors_see_the_packets)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    test::Send(network, 100'000, anabranch::SOCKETS, anabranch::SOCKETS);
    FlowMonitorHelper helper;
    const Ptr<FlowMonitor> monitor = helper.InstallAll();
    RunFor(10);
    EXPECT_OF(monitor->GetFlowStats().size(), ==, 2U);
    EXPECT_OF(monitor->GetFlowStats().begin()->second.rxBytes, >, 100'000U);
}

CASE(an_idle_host_notices_a_new_interface)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    network.Cut(1);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    socket->Connect(Service(network));
    Simulator::Schedule(Seconds(0.5), [&] { socket->Send(test::Pattern(0, 1000)); });
    RunFor(30);
    EXPECT_OF(test::Count(Ours(socket).GetStatistics(), "\"closed_at_ns\":null,\"congestion"), ==, 1U);
    network.Mend(1);
    RunFor(2);
    EXPECT_OF(test::Count(Ours(socket).GetStatistics(), "\"closed_at_ns\":null,\"congestion"), >, 1U);
}

CASE(small_links_split_packets_that_can_be_told_apart)
{
    Network network{{"10Mbps", "10ms", 0.03}};
    for (uint32_t host = 0; host < 2; host++)
        network.devices[0].Get(host)->SetMtu(600);
    anabranch::Install(network.hosts);
    test::Stream& stream = test::Send(network, 500'000, anabranch::SOCKETS, anabranch::SOCKETS);
    RunFor(60);
    EXPECT_OF(stream.sink->GetTotalRx(), ==, 500'000U);
}

CASE(a_coarse_clock_does_not_stop_the_simulation)
{
    Time::SetResolution(Time::US);
    Network network{{"10Mbps", "10ms", 0.01}};
    anabranch::Install(network.hosts);
    test::Stream& stream = test::Send(network, 500'000, anabranch::SOCKETS, anabranch::SOCKETS);
    RunFor(60);
    EXPECT_OF(stream.sink->GetTotalRx(), ==, 500'000U);
}

namespace {

void NoteTos(std::set<uint32_t>* seen, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
{
    Ipv4Header header;
    packet->PeekHeader(header);
    // The last packets of a connection come after its socket.
    if (packet->GetSize() > 100)
        seen->insert(header.GetTos() >> 2 | header.GetTtl() << 8);
}

// Of the packets with data, and of those that begin subflows.
void NoteMarks(std::set<uint32_t>* seen, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
{
    const Ptr<Packet> segment = packet->Copy();
    Ipv4Header header;
    segment->RemoveHeader(header);
    if (packet->GetSize() <= 100 && !anabranch::IsSyn(*segment))
        return;
    SocketPriorityTag tag;
    const uint32_t priority = packet->PeekPacketTag(tag) ? tag.GetPriority() : 0;
    seen->insert(header.GetTos() >> 2 | header.GetTtl() << 8 | priority << 16);
}

struct Counter {
    int times = 0;

    void Count(Ptr<ns3::Socket>) { times++; }
};

void CloseNew(Ptr<ns3::Socket> connection, const Address&)
{
    connection->SetRecvCallback(MakeCallback(+[](Ptr<ns3::Socket> socket) {
        while (const Ptr<Packet> packet = socket->Recv())
            if (packet->GetSize() == 0)
                return;
    }));
}

void SendAgain(int* times, Ptr<ns3::Socket> socket, uint32_t)
{
    if ((*times)++ < 100'000)
        socket->Send(Create<Packet>(1));
}

} // namespace

CASE(packets_have_the_tos_and_ttl_of_their_socket)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    std::set<uint32_t> seen;
    network.hosts.Get(0)->GetObject<Ipv4>()->TraceConnectWithoutContext("Tx", MakeBoundCallback(&NoteTos, &seen));
    Sender sender{NewSocket(network, 0), 10'000};
    sender.socket->SetIpTtl(9);
    InetSocketAddress to = Service(network);
    to.SetTos(0xb8);
    sender.Connect(to);
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 10'000U);
    for (uint32_t one : seen)
        EXPECT_OF(one, ==, 0xb8U >> 2 | 9U << 8);
}

// From the first segment of every subflow on.
CASE(all_packets_of_both_sides_have_the_marks_of_their_socket)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.socket->SetIpTos(0x40);
    receiver.socket->SetIpTtl(7);
    receiver.socket->SetPriority(3);
    receiver.Listen(test::PORT);
    std::set<uint32_t> seen[2];
    for (uint32_t host = 0; host < 2; host++)
        network.hosts.Get(host)->GetObject<Ipv4>()->TraceConnectWithoutContext(
            "Tx", MakeBoundCallback(&NoteMarks, &seen[host]));
    Sender sender{NewSocket(network, 0), 100'000};
    InetSocketAddress to = Service(network);
    to.SetTos(0xb8);
    sender.socket->SetIpTtl(9);
    sender.Connect(to);
    sender.socket->SetPriority(5);
    RunFor(1);
    EXPECT_OF(receiver.received, ==, 100'000U);
    EXPECT_OF(test::Count(Ours(receiver.open.front()).GetStatistics(), "\"congestion"), >=, 2U);
    for (const uint32_t one : seen[0])
        EXPECT_OF(one, ==, 0xb8U >> 2 | 9U << 8 | 5U << 16);
    for (const uint32_t one : seen[1])
        EXPECT_OF(one, ==, 0x40U >> 2 | 7U << 8 | 3U << 16);
}

CASE(accepted_sockets_have_the_close_callbacks_of_the_listening_one)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Counter closes, errors;
    const Ptr<ns3::Socket> listening = NewSocket(network, 1);
    EXPECT(listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
    EXPECT(listening->Listen() == 0);
    listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<ns3::Socket>, const Address&>(), MakeCallback(&CloseNew));
    listening->SetCloseCallbacks(MakeCallback(&Counter::Count, &closes), MakeCallback(&Counter::Count, &errors));
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    RunFor(2);
    EXPECT_OF(closes.times, ==, 1);
    EXPECT_OF(errors.times, ==, 0);
}

CASE(more_room_after_a_change_is_told)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    // Nothing is sent, and so nothing arrives that could tell of room.
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    EXPECT(socket->Connect(Service(network)) == 0);
    RunFor(1);
    uint32_t told = 0;
    socket->SetSendCallback(MakeBoundCallback(+[](uint32_t* room, Ptr<ns3::Socket>, uint32_t now) { *room = now; }, &told));
    const uint32_t before = socket->GetTxAvailable();
    EXPECT(Ours(socket).Change(R"({"send_buffer_bytes": 9000000})"));
    RunFor(1);
    EXPECT_OF(told, >, before);
}

CASE(an_application_may_send_whenever_it_hears_that_it_has_sent)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    int times = 0;
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    socket->SetDataSentCallback(MakeBoundCallback(&SendAgain, &times));
    socket->Connect(Service(network));
    Simulator::Schedule(Seconds(1), [&] { socket->Send(Create<Packet>(1)); });
    RunFor(10);
    EXPECT_OF(receiver.received, ==, 100'001U);
}

CASE(mistakes_end_the_program_with_a_message)
{
    EXPECT(Dies([] {
        Network network{{"10Mbps", "10ms"}};
        anabranch::Install(network.hosts);
        test::Send(network, 1000, "ns3::TcpSocketFactory", anabranch::SOCKETS);
        RunFor(10);
    }));
    EXPECT(Dies([] {
        Config::SetDefault("anabranch::Socket::Settings", StringValue(R"({"congestion": "vegass"})"));
        Network network{{"10Mbps", "10ms"}};
        anabranch::Install(network.hosts);
        NewSocket(network, 0)->Connect(Service(network));
    }));
    EXPECT(Dies([] { anabranch::Install(NodeContainer(1)); }));
    EXPECT(!Dies([] {}));
}
