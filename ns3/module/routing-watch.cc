// SPDX-License-Identifier: GPL-2.0-only
#include "routing-watch.h"

#include "host.h"

#include "ns3/output-stream-wrapper.h"
#include "ns3/simulator.h"

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(RoutingWatch);

TypeId RoutingWatch::GetTypeId()
{
    static TypeId id = TypeId("anabranch::RoutingWatch")
                           .SetParent<Ipv6ListRouting>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<RoutingWatch>();
    return id;
}

bool RoutingWatch::Install(Ptr<Ipv6> ipv6, Ptr<Host> host)
{
    const Ptr<RoutingWatch> watch = CreateObject<RoutingWatch>();
    watch->ip = ipv6;
    watch->routing = ipv6->GetRoutingProtocol();
    watch->list = DynamicCast<Ipv6ListRouting>(watch->routing);
    watch->host = host;
    ipv6->SetRoutingProtocol(watch);
    // The node may have addresses already.
    watch->TellWhenChecked();
    return true;
}

void RoutingWatch::DoDispose()
{
    if (routing)
        routing->Dispose();
    routing = nullptr;
    list = nullptr;
    host = nullptr;
    ip = nullptr;
    Ipv6ListRouting::DoDispose();
}

void RoutingWatch::Tell()
{
    if (host)
        host->NoteAddresses();
}

// ns-3 tells nobody whether a new address has turned out to be a duplicate.
void RoutingWatch::TellWhenChecked()
{
    const Time check = Family6::CheckTime(ip);
    if (!check.IsZero())
        Simulator::Schedule(check, &RoutingWatch::Tell, Ptr<RoutingWatch>(this));
}

void RoutingWatch::AddRoutingProtocol(Ptr<Ipv6RoutingProtocol> added, int16_t priority)
{
    NS_ABORT_MSG_UNLESS(list, "the IPv6 routing of this node is no list: use Ipv6ListRoutingHelper before Install");
    list->AddRoutingProtocol(added, priority);
}

uint32_t RoutingWatch::GetNRoutingProtocols() const
{
    return list ? list->GetNRoutingProtocols() : 1;
}

Ptr<Ipv6RoutingProtocol> RoutingWatch::GetRoutingProtocol(uint32_t index, int16_t& priority) const
{
    if (list)
        return list->GetRoutingProtocol(index, priority);
    priority = 0;
    return routing;
}

Ptr<Ipv6Route> RoutingWatch::RouteOutput(Ptr<Packet> packet, const Ipv6Header& header, Ptr<NetDevice> device,
                                         ns3::Socket::SocketErrno& error)
{
    return routing->RouteOutput(packet, header, device, error);
}

bool RoutingWatch::RouteInput(Ptr<const Packet> packet, const Ipv6Header& header, Ptr<const NetDevice> device,
                              UnicastForwardCallback unicast, MulticastForwardCallback multicast,
                              LocalDeliverCallback local, ErrorCallback error)
{
    return routing->RouteInput(packet, header, device, unicast, multicast, local, error);
}

void RoutingWatch::NotifyInterfaceUp(uint32_t interface)
{
    routing->NotifyInterfaceUp(interface);
    Tell();
}

void RoutingWatch::NotifyInterfaceDown(uint32_t interface)
{
    routing->NotifyInterfaceDown(interface);
    Tell();
}

void RoutingWatch::NotifyAddAddress(uint32_t interface, Ipv6InterfaceAddress address)
{
    routing->NotifyAddAddress(interface, address);
    Tell();
    TellWhenChecked();
}

void RoutingWatch::NotifyRemoveAddress(uint32_t interface, Ipv6InterfaceAddress address)
{
    routing->NotifyRemoveAddress(interface, address);
    Tell();
}

void RoutingWatch::NotifyAddRoute(Ipv6Address destination, Ipv6Prefix mask, Ipv6Address nextHop, uint32_t interface,
                                  Ipv6Address prefix)
{
    routing->NotifyAddRoute(destination, mask, nextHop, interface, prefix);
}

void RoutingWatch::NotifyRemoveRoute(Ipv6Address destination, Ipv6Prefix mask, Ipv6Address nextHop,
                                     uint32_t interface, Ipv6Address prefix)
{
    routing->NotifyRemoveRoute(destination, mask, nextHop, interface, prefix);
}

// The routing behind it has been told already, and would not be told twice.
void RoutingWatch::SetIpv6(Ptr<Ipv6>) {}

void RoutingWatch::PrintRoutingTable(Ptr<OutputStreamWrapper> stream, Time::Unit unit) const
{
    routing->PrintRoutingTable(stream, unit);
}

} // namespace anabranch
