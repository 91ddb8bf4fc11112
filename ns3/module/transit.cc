// SPDX-License-Identifier: GPL-2.0-only
#include "transit.h"

#include "engine.h"

#include "ns3/ipv4-list-routing.h"
#include "ns3/ipv4-route.h"
#include "ns3/node.h"

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Transit);

namespace {

constexpr int16_t FIRST = 32767;

} // namespace

TypeId Transit::GetTypeId()
{
    static TypeId id = TypeId("anabranch::Transit")
                           .SetParent<Ipv4RoutingProtocol>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<Transit>();
    return id;
}

void Transit::Install(Ptr<Ipv4> ipv4, Ptr<NetDevice> from, Ipv4Address lent)
{
    const Ptr<Ipv4ListRouting> list = DynamicCast<Ipv4ListRouting>(ipv4->GetRoutingProtocol());
    NS_ABORT_MSG_UNLESS(list, "node " << from->GetNode()->GetId()
                                      << ": packets can pass the agent of a relay only if its IPv4 routing is a list, as "
                                         "InternetStackHelper makes it");
    const Ptr<Transit> transit = CreateObject<Transit>();
    transit->from = from;
    transit->lent = lent;
    list->AddRoutingProtocol(transit, FIRST);
}

void Transit::DoDispose()
{
    ip = nullptr;
    from = nullptr;
    Ipv4RoutingProtocol::DoDispose();
}

Ptr<Ipv4Route> Transit::RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, ns3::Socket::SocketErrno& error)
{
    error = ns3::Socket::ERROR_NOROUTETOHOST;
    return nullptr;
}

bool Transit::RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                         UnicastForwardCallback, MulticastForwardCallback, LocalDeliverCallback local, ErrorCallback)
{
    if (device != from || header.GetSource() != lent || header.GetProtocol() != PROTOCOL_TCP || local.IsNull())
        return false;
    local(packet, header, static_cast<uint32_t>(ip->GetInterfaceForDevice(device)));
    return true;
}

void Transit::SetIpv4(Ptr<Ipv4> ipv4)
{
    ip = ipv4;
}

} // namespace anabranch
