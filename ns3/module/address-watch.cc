// SPDX-License-Identifier: GPL-2.0-only
#include "address-watch.h"

#include "host.h"

#include "ns3/ipv4-list-routing.h"
#include "ns3/ipv4-route.h"
#include "ns3/output-stream-wrapper.h"

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(AddressWatch);

namespace {

constexpr int16_t LAST = -32768;

} // namespace

TypeId AddressWatch::GetTypeId()
{
    static TypeId id = TypeId("anabranch::AddressWatch")
                           .SetParent<Ipv4RoutingProtocol>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<AddressWatch>();
    return id;
}

bool AddressWatch::Install(Ptr<Ipv4> ipv4, Ptr<Host> host)
{
    const Ptr<Ipv4ListRouting> list = DynamicCast<Ipv4ListRouting>(ipv4->GetRoutingProtocol());
    if (!list)
        return false;
    const Ptr<AddressWatch> watch = CreateObject<AddressWatch>();
    watch->host = host;
    list->AddRoutingProtocol(watch, LAST);
    return true;
}

void AddressWatch::DoDispose()
{
    host = nullptr;
    Ipv4RoutingProtocol::DoDispose();
}

void AddressWatch::Tell()
{
    if (host)
        host->NoteAddresses();
}

Ptr<Ipv4Route> AddressWatch::RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>,
                                         ns3::Socket::SocketErrno& error)
{
    error = ns3::Socket::ERROR_NOROUTETOHOST;
    return nullptr;
}

bool AddressWatch::RouteInput(Ptr<const Packet>, const Ipv4Header&, Ptr<const NetDevice>, UnicastForwardCallback,
                              MulticastForwardCallback, LocalDeliverCallback, ErrorCallback)
{
    return false;
}

void AddressWatch::NotifyInterfaceUp(uint32_t)
{
    Tell();
}

void AddressWatch::NotifyInterfaceDown(uint32_t)
{
    Tell();
}

void AddressWatch::NotifyAddAddress(uint32_t, Ipv4InterfaceAddress)
{
    Tell();
}

void AddressWatch::NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress)
{
    Tell();
}

void AddressWatch::SetIpv4(Ptr<Ipv4>) {}

void AddressWatch::PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const {}

} // namespace anabranch
