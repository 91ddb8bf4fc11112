// SPDX-License-Identifier: GPL-2.0-only
#include "host.h"

#include "engine.h"
#include "packet.h"
#include "socket.h"

#include "ns3/ipv4-interface.h"
#include "ns3/ipv6-interface.h"
#include "ns3/log.h"
#include "ns3/node.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/trace-source-accessor.h"

#include <algorithm>

using namespace ns3;

NS_LOG_COMPONENT_DEFINE("AnabranchHost");

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Host);

namespace {

// Super-segments are off by default; with them the engine writes no more than this.
constexpr size_t PACKET_MAX = 65535;

// Of an IP packet (RFC 791, RFC 8200).
bool IsIpv6(const uint8_t* octets)
{
    return octets[0] >> 4 == 6;
}

} // namespace

TypeId Host::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::Host")
            .SetParent<IpL4Protocol>()
            .SetGroupName("Anabranch")
            .AddConstructor<Host>()
            .AddAttribute("Settings",
                          "Settings of the engine as a JSON object: see anabranch_endpoint_new() in anabranch.h.",
                          StringValue("{}"),
                          MakeStringAccessor(&Host::SetSettings, &Host::GetSettings),
                          MakeStringChecker())
            .AddAttribute("Log",
                          "Beginning of the name of a log of what the engine decides, \"run\" for run-0.sqlog on node 0: "
                          "see docs/qlog.md. Empty for none.",
                          StringValue(""),
                          MakeStringAccessor(&Host::logPrefix),
                          MakeStringChecker())
            .AddTraceSource("NoRoute",
                            "A packet was dropped because no route leads to its destination from its source address.",
                            MakeTraceSourceAccessor(&Host::noRoute4),
                            "ns3::Ipv4L3Protocol::SentTracedCallback")
            .AddTraceSource("NoRoute6",
                            "The same of an IPv6 packet.",
                            MakeTraceSourceAccessor(&Host::noRoute6),
                            "ns3::Ipv6L3Protocol::SentTracedCallback");
    return id;
}

Host::Host() : buffer(PACKET_MAX) {}

Host::~Host() = default;

void Host::NotifyNewAggregate()
{
    Join(layer4);
    Join(layer6);
    IpL4Protocol::NotifyNewAggregate();
}

template <class Family>
void Host::Join(Layer<Family>& layer)
{
    const auto ip = GetObject<typename Family::Ip>();
    if (!ip || layer.GetIp())
        return;
    if (!isBehind)
        ip->Insert(this);
    layer.Attach(ip, this);
}

void Host::DoDispose()
{
    timer.Cancel();
    for (const auto& [number, socket] : connections)
        socket->HandleHostGone();
    for (const auto& [number, socket] : listeners)
        socket->HandleHostGone();
    connections.clear();
    listeners.clear();
    waiting.clear();
    agent = nullptr;
    anabranch_endpoint_free(engine);
    engine = nullptr;
    layer4.Detach();
    layer6.Detach();
    IpL4Protocol::DoDispose();
}

void Host::SetNextHop(Ipv4Address source, Ipv4Address nextHop)
{
    layer4.SetNextHop(source, nextHop);
}

void Host::SetNextHop(Ipv6Address source, Ipv6Address nextHop)
{
    layer6.SetNextHop(source, nextHop);
}

void Host::SetOnward(Ipv4Address destination, Ptr<Ipv4Route> route)
{
    layer4.SetOnward(destination, route);
}

void Host::SetBackup(Ipv4Address address)
{
    RequireNoEngine("SetBackup");
    layer4.SetBackup(address);
}

void Host::SetBackup(Ipv6Address address)
{
    RequireNoEngine("SetBackup");
    layer6.SetBackup(address);
}

void Host::RequireNoEngine(const char* what) const
{
    NS_ABORT_MSG_IF(engine, what << ": the engine has begun; do this before the first connection");
}

void Host::SetSettings(std::string json)
{
    RequireNoEngine("Settings of the host");
    settings = std::move(json);
}

std::string Host::GetSettings() const
{
    return settings;
}

// Made late: each generator that is made takes a stream, and streams of those after it would change.
Ptr<UniformRandomVariable> Host::GetRandom()
{
    if (!random)
        random = CreateObject<UniformRandomVariable>();
    return random;
}

int64_t Host::AssignStreams(int64_t stream)
{
    GetRandom()->SetStream(stream);
    return 1;
}

// The engine is made when it is first needed: by then the node has its addresses.
AnabranchEndpoint* Host::GetEngine()
{
    if (!engine)
        MakeEngine();
    return engine;
}

void Host::MakeEngine()
{
    NS_ABORT_MSG_UNLESS(layer4.GetIp() || layer6.GetIp(),
                        "the engine of a node without IP was asked for, or after the end of the simulation");
    uint8_t seed[ANABRANCH_SEED_LEN];
    DrawOctets(seed, sizeof seed);
    const AnabranchStatus status = anabranch_endpoint_new(settings.c_str(), seed, &engine);
    RequireSettings(status, settings);
    Require(status, "anabranch_endpoint_new");
    if (!logPrefix.empty())
        StartLog();
    FollowAddresses();
}

void Host::DrawOctets(uint8_t* octets, size_t count)
{
    std::generate_n(octets, count, [this] { return static_cast<uint8_t>(GetRandom()->GetInteger(0, 255)); });
}

void Host::StandBehind(Ptr<Node> node)
{
    isBehind = true;
    node->AggregateObject(this);
}

void Host::SetAgent(Ptr<Agent> of)
{
    NS_ABORT_MSG_IF(agent, "node " << GetObject<Node>()->GetId() << " has an agent already");
    agent = of;
}

void Host::StartAgent(const std::string& peers, const std::string& agentSettings)
{
    GetPublicKey();
    uint8_t seed[ANABRANCH_SEED_LEN];
    DrawOctets(seed, sizeof seed);
    AnabranchEndpoint* const cooperating = GetEngine();
    const AnabranchStatus status =
        anabranch_start_agent(cooperating, peers.c_str(), agentSettings.c_str(), secret.data(), seed, NowNs());
    RequireSettings(status, agentSettings);
    Require(status, "anabranch_start_agent");
    Wake();
}

std::string Host::GetPublicKey()
{
    if (secret.empty()) {
        secret.resize(ANABRANCH_KEY_LEN);
        DrawOctets(secret.data(), secret.size());
    }
    uint8_t key[ANABRANCH_KEY_LEN];
    Require(anabranch_public_key(secret.data(), key), "anabranch_public_key");
    return TextOf(key, sizeof key);
}

bool Host::MayConnect(const AnabranchAddress& destination, Ptr<Socket> socket)
{
    if (!agent || agent->Begin(destination))
        return true;
    waiting.push_back(socket);
    return false;
}

void Host::StartLog()
{
    const std::string node = std::to_string(GetObject<Node>()->GetId());
    const std::string name = logPrefix + "-" + node + ".sqlog";
    log.open(name, std::ios::binary);
    NS_ABORT_MSG_UNLESS(log, "cannot write " << name);
    const AnabranchWrite write = [](void* context, const uint8_t* octets, size_t length) {
        static_cast<std::ofstream*>(context)->write(reinterpret_cast<const char*>(octets),
                                                    static_cast<std::streamsize>(length));
    };
    Require(anabranch_start_log(engine, ("node " + node).c_str(), write, &log), "anabranch_start_log");
}

bool Host::IsUsable(const AnabranchAddress& address) const
{
    return address.family == 6 ? layer6.IsUsable(Ipv6Of(address)) : layer4.IsUsable(Ipv4Of(address));
}

bool Host::HasAddress(uint8_t family)
{
    // The engine knows what was there in its last turn.
    if (engine)
        FollowAddresses();
    return family == 6 ? layer6.HasAddress() : layer4.HasAddress();
}

void Host::NoteAddresses()
{
    layer4.NoteAddresses();
    layer6.NoteAddresses();
    if (engine)
        Wake();
}

void Host::FollowAddresses()
{
    layer4.Follow(engine);
    layer6.Follow(engine);
}

void Host::AddConnection(uint64_t connection, Ptr<Socket> socket)
{
    AnabranchAddress here, there;
    connections[connection] = socket;
    if (anabranch_addresses(engine, connection, &here, &there) == ANABRANCH_STATUS_OK)
        subflows.Add({here, there}, connection);
}

void Host::AddListener(uint64_t listener, Ptr<Socket> socket)
{
    listeners[listener] = socket;
}

void Host::RemoveListener(uint64_t listener)
{
    listeners.erase(listener);
}

bool Host::YieldIpv4(uint16_t port)
{
    const auto all = listeners;
    return std::any_of(all.begin(), all.end(), [=](const auto& entry) { return entry.second->YieldIpv4(port); });
}

void Host::ResumeIpv4(uint16_t port)
{
    const auto all = listeners;
    for (const auto& [number, socket] : all)
        socket->ResumeIpv4(port);
}

AnabranchAddress Host::SourceFor(const AnabranchAddress& destination, Ptr<NetDevice> device) const
{
    if (agent && agent->ChoosesAddress() && !device)
        return destination.family == 6 ? ToEngine(Ipv6Address::GetAny(), 0) : ToEngine(Ipv4Address::GetAny(), 0);
    if (destination.family == 6)
        return ToEngine(layer6.SourceFor(Ipv6Of(destination), device), 0);
    return ToEngine(layer4.SourceFor(Ipv4Of(destination), device), 0);
}

int Host::GetProtocolNumber() const
{
    return PROTOCOL_TCP;
}

IpL4Protocol::RxStatus Host::Receive(Ptr<Packet> packet, const Ipv4Header& header, Ptr<Ipv4Interface>)
{
    return Take(*packet, header);
}

IpL4Protocol::RxStatus Host::Receive(Ptr<Packet> packet, const Ipv6Header& header, Ptr<Ipv6Interface>)
{
    // IPv6 delivers what is sent to all nodes of a link, and TCP has no answer to that (RFC 9293 section 3.9.2.3).
    return header.GetDestination().IsMulticast() ? RX_OK : Take(*packet, header);
}

template <class Header>
IpL4Protocol::RxStatus Host::Take(const Packet& packet, const Header& header)
{
    AnabranchEndpoint* const receiver = GetEngine();
    const std::vector<uint8_t> octets = IpOctets(packet, header);
    const AnabranchStatus status = anabranch_handle_packet(receiver, octets.data(), octets.size(), NowNs());
    if (const uint64_t connection = subflows.ConnectionOf(OfReceived(header, packet)))
        mayHaveRoom.insert(connection);
    Wake();
    if (status == ANABRANCH_STATUS_MALFORMED_PACKET) {
        NS_LOG_LOGIC("dropped a packet from " << header.GetSource() << ": " << anabranch_last_error());
        return RX_CSUM_FAILED;
    }
    Require(status, "anabranch_handle_packet");
    return RX_OK;
}

template <class Header>
void Host::PassOn(const Packet& packet, const Header& header)
{
    const std::vector<uint8_t> octets = IpOctets(packet, header);
    const AnabranchStatus status = anabranch_forward_packet(GetEngine(), octets.data(), octets.size(), NowNs());
    Wake();
    if (status == ANABRANCH_STATUS_MALFORMED_PACKET)
        NS_LOG_LOGIC("passes on nothing damaged, as from " << header.GetSource() << ": " << anabranch_last_error());
    else
        Require(status, "anabranch_forward_packet");
}

template void Host::PassOn(const Packet& packet, const Ipv4Header& header);
template void Host::PassOn(const Packet& packet, const Ipv6Header& header);

// Segments go to the IPv4 and the IPv6 of the node, and nowhere else.
void Host::SetDownTarget(DownTargetCallback) {}

void Host::SetDownTarget6(DownTargetCallback6) {}

IpL4Protocol::DownTargetCallback Host::GetDownTarget() const
{
    return {};
}

IpL4Protocol::DownTargetCallback6 Host::GetDownTarget6() const
{
    return {};
}

void Host::Wake()
{
    // The present turn goes on until there is nothing to do.
    if (hasTurn)
        return;
    timer.Cancel();
    timer = Simulator::ScheduleNow(&Host::Turn, this);
}

void Host::Turn()
{
    hasTurn = true;
    Require(anabranch_handle_timeout(GetEngine(), NowNs()), "anabranch_handle_timeout");
    FollowAddresses();
    bool isBusy = true;
    while (isBusy) {
        isBusy = Transmit();
        isBusy |= Dispatch();
        isBusy |= HearAgent();
        isBusy |= OfferRoom();
    }
    hasTurn = false;
    SetTimer();
    // Outside of the turn: who hears of a window may use sockets.
    TraceWindows();
}

void Host::SetTimer()
{
    uint64_t atNs = ANABRANCH_NEVER;
    Require(anabranch_poll_timeout(engine, &atNs), "anabranch_poll_timeout");
    timer.Cancel();
    if (atNs == ANABRANCH_NEVER)
        return;
    const int64_t delayNs = static_cast<int64_t>(atNs - std::min(atNs, NowNs()));
    Time delay = NanoSeconds(delayNs);
    // Never early: with a coarser resolution, the same time would come again and again.
    if (delay.GetNanoSeconds() < delayNs)
        delay += TimeStep(1);
    timer = Simulator::Schedule(delay, &Host::Turn, this);
}

// Returns whether there was anything.
bool Host::Transmit()
{
    size_t length = 0;
    bool any = false;
    while (anabranch_poll_transmit(engine, NowNs(), buffer.data(), buffer.size(), &length) == ANABRANCH_STATUS_OK) {
        any = true;
        const Ptr<Packet> packet = Create<Packet>(buffer.data(), length);
        if (IsIpv6(buffer.data()))
            Send(packet, layer6, noRoute6);
        else
            Send(packet, layer4, noRoute4);
    }
    return any;
}

template <class Family, class Trace>
void Host::Send(Ptr<Packet> packet, const Layer<Family>& layer, const Trace& noRoute)
{
    typename Family::Header header;
    packet->RemoveHeader(header);
    if (const auto route = layer.RouteOf(header, packet)) {
        // Not with the header as it is: IP tells monitors only of packets to which it adds one, and numbers fragments.
        Tag<Family>(packet, header);
        layer.GetIp()->Send(packet, header.GetSource(), header.GetDestination(), PROTOCOL_TCP, route);
    } else {
        NS_LOG_WARN("no route from " << header.GetSource() << " to " << header.GetDestination());
        noRoute(header, packet);
    }
}

// Returns the socket of a segment that is sent; nothing if there is none any more. The first segment of a subflow comes
// before the engine reports it. The first one of a connection that is accepted has the listening socket.
Ptr<Socket> Host::SocketOf(const FourTuple& subflow, bool isSyn)
{
    uint64_t connection = subflows.ConnectionOf(subflow);
    if (connection == 0 && isSyn
        && anabranch_connection_of(engine, &subflow.local, &subflow.remote, &connection) == ANABRANCH_STATUS_OK)
        subflows.Add(subflow, connection);
    const auto found = connections.find(connection);
    if (found != connections.end())
        return found->second;
    const auto isListening = [&](const auto& entry) { return isSyn && entry.second->ListensAt(subflow.local); };
    const auto listening = std::find_if(listeners.begin(), listeners.end(), isListening);
    return listening == listeners.end() ? nullptr : listening->second;
}

// What the header says beyond addresses, and what the socket wants of its packets.
template <class Family>
void Host::Tag(Ptr<Packet> packet, const typename Family::Header& header)
{
    const FourTuple subflow = OfSent(header, *packet);
    Marks marks = Family::MarksOf(header);
    if (const Ptr<Socket> socket = SocketOf(subflow, IsSyn(*packet))) {
        marks = socket->MarksOf(marks, Family::IS_IPV6);
        mayHaveRoom.insert(subflows.ConnectionOf(subflow));
        if (const uint8_t priority = socket->GetPriority()) {
            SocketPriorityTag tag;
            tag.SetPriority(priority);
            packet->ReplacePacketTag(tag);
        }
    }
    Family::Mark(packet, marks);
}

// Returns whether there was anything.
bool Host::Dispatch()
{
    AnabranchEvent event;
    bool any = false;
    while (anabranch_poll_event(engine, &event) == ANABRANCH_STATUS_OK) {
        any = true;
        Tell(event);
    }
    return any;
}

void Host::Tell(const AnabranchEvent& event)
{
    const bool isIncoming = event.kind == ANABRANCH_EVENT_KIND_INCOMING;
    const auto& sockets = isIncoming ? listeners : connections;
    const auto found = sockets.find(isIncoming ? event.listener : event.connection);
    if (found == sockets.end())
        return;
    if (event.kind == ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED)
        subflows.Add({event.local, event.remote}, event.connection);
    // Held: the application may drop its reference meanwhile.
    const Ptr<Socket> socket = found->second;
    socket->Handle(event);
    if (event.kind == ANABRANCH_EVENT_KIND_CLOSED) {
        connections.erase(event.connection);
        subflows.Forget(event.connection);
    }
}

// Returns whether there was anything.
bool Host::HearAgent()
{
    AnabranchAgentEvent event;
    bool any = false;
    while (agent && anabranch_poll_agent_event(engine, &event) == ANABRANCH_STATUS_OK) {
        any = true;
        agent->Handle(event);
        if (event.kind != ANABRANCH_AGENT_EVENT_KIND_READY)
            continue;
        std::vector<Ptr<Socket>> asked;
        asked.swap(waiting);
        for (const Ptr<Socket>& socket : asked)
            socket->ConnectNow();
    }
    return any;
}

// Returns whether there was anything.
bool Host::OfferRoom()
{
    std::set<uint64_t> asked;
    asked.swap(mayHaveRoom);
    bool any = false;
    for (const uint64_t connection : asked) {
        const auto found = connections.find(connection);
        const Ptr<Socket> socket = found == connections.end() ? nullptr : found->second;
        any |= socket && socket->OfferRoom();
        if (socket && socket->TracesWindows())
            traced.insert(connection);
    }
    return any;
}

void Host::TraceWindows()
{
    std::set<uint64_t> asked;
    asked.swap(traced);
    for (const uint64_t connection : asked) {
        const auto found = connections.find(connection);
        const Ptr<Socket> socket = found == connections.end() ? nullptr : found->second;
        if (socket)
            socket->TraceWindows();
    }
}

} // namespace anabranch
