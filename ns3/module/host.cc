// SPDX-License-Identifier: GPL-2.0-only
#include "host.h"

#include "address-watch.h"
#include "engine.h"
#include "packet.h"
#include "socket.h"

#include "ns3/ipv4-interface.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
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

constexpr int PROTOCOL_TCP = 6;
// Super-segments are off by default; with them the engine writes no more than this.
constexpr size_t PACKET_MAX = 65535;
// RFC 3168: the two bits of the TOS that are not the socket's.
constexpr uint8_t ECN_BITS = 3;

FourTuple Between(const AnabranchAddress& local, const AnabranchAddress& remote)
{
    const InetSocketAddress here = FromEngine(local), there = FromEngine(remote);
    return {here.GetIpv4(), there.GetIpv4(), here.GetPort(), there.GetPort()};
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
                            MakeTraceSourceAccessor(&Host::noRoute),
                            "ns3::Ipv4L3Protocol::SentTracedCallback");
    return id;
}

Host::Host() : buffer(PACKET_MAX) {}

Host::~Host() = default;

void Host::NotifyNewAggregate()
{
    if (!ipv4) {
        ipv4 = GetObject<Ipv4>();
        if (ipv4) {
            ipv4->Insert(this);
            isWatched = AddressWatch::Install(ipv4, this);
        }
    }
    IpL4Protocol::NotifyNewAggregate();
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
    anabranch_endpoint_free(engine);
    engine = nullptr;
    ipv4 = nullptr;
    IpL4Protocol::DoDispose();
}

void Host::SetNextHop(Ipv4Address source, Ipv4Address nextHop)
{
    nextHops[source] = nextHop;
}

void Host::SetBackup(Ipv4Address address)
{
    NS_ABORT_MSG_IF(engine, "SetBackup: the engine has begun; ask before the first connection");
    backups.insert(address);
}

void Host::SetSettings(std::string json)
{
    NS_ABORT_MSG_IF(engine, "Settings of the host: the engine has begun; set them before the first connection");
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
    NS_ABORT_MSG_UNLESS(ipv4, "the engine of a node without IPv4 was asked for, or after the end of the simulation");
    uint8_t seed[ANABRANCH_SEED_LEN];
    for (uint8_t& octet : seed)
        octet = static_cast<uint8_t>(GetRandom()->GetInteger(0, 255));
    const AnabranchStatus status = anabranch_endpoint_new(settings.c_str(), seed, &engine);
    RequireSettings(status, settings);
    Require(status, "anabranch_endpoint_new");
    if (!logPrefix.empty())
        StartLog();
    FollowAddresses();
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

std::set<Ipv4Address> Host::UsableAddresses() const
{
    std::set<Ipv4Address> usable;
    for (uint32_t interface = 0; interface < ipv4->GetNInterfaces(); interface++) {
        for (uint32_t index = 0; ipv4->IsUp(interface) && index < ipv4->GetNAddresses(interface); index++) {
            const Ipv4Address address = ipv4->GetAddress(interface, index).GetLocal();
            if (!address.IsLocalhost())
                usable.insert(address);
        }
    }
    return usable;
}

bool Host::IsUsable(Ipv4Address address) const
{
    const int32_t interface = ipv4->GetInterfaceForAddress(address);
    return interface >= 0 && ipv4->IsUp(interface);
}

void Host::NoteAddresses()
{
    mayHaveMoved = true;
    if (engine)
        Wake();
}

// Without a watch, addresses are compared at every turn.
void Host::FollowAddresses()
{
    if (isWatched && !mayHaveMoved)
        return;
    mayHaveMoved = false;
    const std::set<Ipv4Address> usable = UsableAddresses();
    if (usable == addresses)
        return;
    for (Ipv4Address address : addresses) {
        const AnabranchAddress gone = ToEngine(address);
        if (!usable.count(address))
            Require(anabranch_remove_local_address(engine, &gone, NowNs()), "anabranch_remove_local_address");
    }
    for (Ipv4Address address : usable) {
        const AnabranchAddress added = ToEngine(address);
        const bool backup = backups.count(address) > 0;
        if (!addresses.count(address))
            Require(anabranch_add_local_address(engine, &added, backup, NowNs()), "anabranch_add_local_address");
    }
    addresses = usable;
}

void Host::AddConnection(uint64_t connection, Ptr<Socket> socket)
{
    AnabranchAddress here, there;
    connections[connection] = socket;
    if (anabranch_addresses(engine, connection, &here, &there) == ANABRANCH_STATUS_OK)
        subflows.Add(Between(here, there), connection);
}

void Host::CatchUp(uint64_t connection)
{
    const auto found = early.find(connection);
    if (found == early.end())
        return;
    const std::vector<AnabranchEvent> events = std::move(found->second);
    early.erase(found);
    for (const AnabranchEvent& event : events)
        Tell(event);
}

void Host::AddListener(uint64_t listener, Ptr<Socket> socket)
{
    listeners[listener] = socket;
}

void Host::RemoveListener(uint64_t listener)
{
    listeners.erase(listener);
}

Ipv4Address Host::SourceFor(Ipv4Address destination, Ptr<NetDevice> device)
{
    Ipv4Header header;
    header.SetDestination(destination);
    header.SetProtocol(PROTOCOL_TCP);
    ns3::Socket::SocketErrno error;
    const Ptr<Ipv4Route> route = ipv4->GetRoutingProtocol()->RouteOutput(Create<Packet>(), header, device, error);
    return route ? route->GetSource() : Ipv4Address::GetZero();
}

int Host::GetProtocolNumber() const
{
    return PROTOCOL_TCP;
}

IpL4Protocol::RxStatus Host::Receive(Ptr<Packet> packet, const Ipv4Header& header, Ptr<Ipv4Interface>)
{
    AnabranchEndpoint* const receiver = GetEngine();
    const std::vector<uint8_t> octets = IpOctets(*packet, header);
    const AnabranchStatus status = anabranch_handle_packet(receiver, octets.data(), octets.size(), NowNs());
    if (const uint64_t connection = subflows.ConnectionOf(OfReceived(header, *packet)))
        heard.insert(connection);
    Wake();
    if (status == ANABRANCH_STATUS_MALFORMED_PACKET) {
        NS_LOG_LOGIC("dropped a packet from " << header.GetSource() << ": " << anabranch_last_error());
        return RX_CSUM_FAILED;
    }
    Require(status, "anabranch_handle_packet");
    return RX_OK;
}

IpL4Protocol::RxStatus Host::Receive(Ptr<Packet>, const Ipv6Header&, Ptr<Ipv6Interface>)
{
    return RX_ENDPOINT_UNREACH;
}

// Segments go to the IPv4 of the node, and nowhere else.
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
        isBusy |= OfferRoom();
    }
    // What nobody has accepted by now has ended.
    early.clear();
    hasTurn = false;
    SetTimer();
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
        Send(Create<Packet>(buffer.data(), length));
    }
    return any;
}

void Host::Send(Ptr<Packet> packet)
{
    Ipv4Header header;
    packet->RemoveHeader(header);
    const Ptr<Ipv4Route> route = RouteOf(header, packet);
    if (route) {
        // Not with the header as it is: IPv4 tells monitors only of packets to which it adds one, and numbers fragments.
        Tag(packet, header);
        ipv4->Send(packet, header.GetSource(), header.GetDestination(), PROTOCOL_TCP, route);
    } else {
        NS_LOG_WARN("no route from " << header.GetSource() << " to " << header.GetDestination());
        noRoute(header, packet);
    }
}

// What the header says beyond addresses, and what the socket wants of its packets.
void Host::Tag(Ptr<Packet> packet, const Ipv4Header& header) const
{
    const auto found = connections.find(subflows.ConnectionOf(OfSent(header, *packet)));
    uint8_t tos = header.GetTos(), ttl = header.GetTtl();
    if (found != connections.end()) {
        const Socket& socket = *found->second;
        tos = (socket.GetIpTos() & ~ECN_BITS) | (tos & ECN_BITS);
        ttl = socket.HasManualTtl() ? socket.GetIpTtl() : ttl;
        if (const uint8_t priority = socket.GetPriority()) {
            SocketPriorityTag tag;
            tag.SetPriority(priority);
            packet->ReplacePacketTag(tag);
        }
    }
    if (tos != 0) {
        SocketIpTosTag tag;
        tag.SetTos(tos);
        packet->AddPacketTag(tag);
    }
    SocketIpTtlTag tag;
    tag.SetTtl(ttl);
    packet->AddPacketTag(tag);
}

Ptr<Ipv4Route> Host::RouteOf(const Ipv4Header& header, Ptr<Packet> packet) const
{
    const int32_t interface = ipv4->GetInterfaceForAddress(header.GetSource());
    if (interface < 0)
        return nullptr;
    const Ptr<NetDevice> device = ipv4->GetNetDevice(interface);
    const auto nextHop = nextHops.find(header.GetSource());
    if (nextHop == nextHops.end()) {
        ns3::Socket::SocketErrno error;
        const Ptr<Ipv4Route> route = ipv4->GetRoutingProtocol()->RouteOutput(packet, header, device, error);
        if (route || !device->IsPointToPoint())
            return route;
    }
    // The other end of a point-to-point device needs no address.
    const Ptr<Ipv4Route> direct = Create<Ipv4Route>();
    direct->SetSource(header.GetSource());
    direct->SetDestination(header.GetDestination());
    direct->SetGateway(nextHop == nextHops.end() ? Ipv4Address::GetZero() : nextHop->second);
    direct->SetOutputDevice(device);
    return direct;
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
    if (found == sockets.end()) {
        // The first data may arrive before the connection is accepted, and so before it has a socket.
        if (!isIncoming)
            early[event.connection].push_back(event);
        return;
    }
    if (event.kind == ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED)
        subflows.Add(Between(event.local, event.remote), event.connection);
    // Held: the application may drop its reference meanwhile.
    const Ptr<Socket> socket = found->second;
    socket->Handle(event);
    if (event.kind == ANABRANCH_EVENT_KIND_CLOSED) {
        connections.erase(event.connection);
        subflows.Forget(event.connection);
    }
}

// Returns whether there was anything.
bool Host::OfferRoom()
{
    std::set<uint64_t> asked;
    asked.swap(heard);
    bool any = false;
    for (const uint64_t connection : asked) {
        const auto found = connections.find(connection);
        const Ptr<Socket> socket = found == connections.end() ? nullptr : found->second;
        any |= socket && socket->OfferRoom();
    }
    return any;
}

} // namespace anabranch
