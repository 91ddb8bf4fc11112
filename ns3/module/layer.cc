// SPDX-License-Identifier: GPL-2.0-only
#include "layer.h"

#include "address-watch.h"
#include "engine.h"
#include "host.h"
#include "routing-watch.h"

#include "ns3/net-device.h"

#include <type_traits>

using namespace ns3;

namespace anabranch {

template <class Family>
void Layer<Family>::Attach(Ptr<Ip> of, Ptr<Host> host)
{
    ip = of;
    isWatched = std::conditional_t<Family::IS_IPV6, RoutingWatch, AddressWatch>::Install(ip, host);
}

template <class Family>
void Layer<Family>::Detach()
{
    ip = nullptr;
    onward.clear();
}

template <class Family>
std::set<typename Family::Address> Layer<Family>::UsableAddresses() const
{
    std::set<Address> usable;
    for (uint32_t interface = 0; interface < ip->GetNInterfaces(); interface++) {
        for (uint32_t index = 0; ip->IsUp(interface) && index < ip->GetNAddresses(interface); index++) {
            const auto address = ip->GetAddress(interface, index);
            if (Family::IsForAll(ip, address))
                usable.insert(address.GetAddress());
        }
    }
    return usable;
}

template <class Family>
bool Layer<Family>::IsUsable(Address address) const
{
    const int32_t interface = ip ? ip->GetInterfaceForAddress(address) : -1;
    if (interface < 0 || !ip->IsUp(interface))
        return false;
    for (uint32_t index = 0; index < ip->GetNAddresses(interface); index++) {
        const auto known = ip->GetAddress(interface, index);
        if (known.GetAddress() == address)
            return Family::MaySend(known);
    }
    return false;
}

template <class Family>
typename Family::Address Layer<Family>::SourceFor(Address destination, Ptr<NetDevice> device) const
{
    if (!ip)
        return Address::GetAny();
    Header header;
    header.SetDestination(destination);
    Family::SetProtocol(header, PROTOCOL_TCP);
    ns3::Socket::SocketErrno error;
    const auto route = ip->GetRoutingProtocol()->RouteOutput(Create<Packet>(), header, device, error);
    // ns-3 also chooses an address that it has found to be a duplicate.
    const bool isGood = route && (!Family::IS_IPV6 || IsUsable(route->GetSource()));
    return isGood ? route->GetSource() : Address::GetAny();
}

// Without a watch, addresses are compared at every turn.
template <class Family>
void Layer<Family>::Follow(AnabranchEndpoint* engine)
{
    if (!ip || (isWatched && !mayHaveMoved))
        return;
    mayHaveMoved = false;
    const std::set<Address> usable = UsableAddresses();
    if (usable == addresses)
        return;
    for (Address address : addresses) {
        const AnabranchAddress gone = ToEngine(address, 0);
        if (!usable.count(address))
            Require(anabranch_remove_local_address(engine, &gone, NowNs()), "anabranch_remove_local_address");
    }
    for (Address address : usable) {
        const AnabranchAddress added = ToEngine(address, 0);
        const bool backup = backups.count(address) > 0;
        if (!addresses.count(address))
            Require(anabranch_add_local_address(engine, &added, backup, NowNs()), "anabranch_add_local_address");
    }
    addresses = usable;
}

template <class Family>
Ptr<typename Family::Route> Layer<Family>::RouteOf(const Header& header, Ptr<Packet> packet) const
{
    const Address source = header.GetSource(), destination = header.GetDestination();
    const int32_t interface = ip ? ip->GetInterfaceForAddress(source) : -1;
    const auto passing = onward.find(destination);
    if (interface < 0 && passing != onward.end())
        return passing->second;
    // Between a link and the world there is no way.
    if (interface < 0 || Family::IsLinkLocal(source) != Family::IsLinkLocal(destination))
        return nullptr;
    const Ptr<NetDevice> device = ip->GetNetDevice(interface);
    const auto nextHop = nextHops.find(source);
    if (nextHop == nextHops.end()) {
        ns3::Socket::SocketErrno error;
        const auto route = ip->GetRoutingProtocol()->RouteOutput(packet, header, device, error);
        if (route || !device->IsPointToPoint())
            return route;
    }
    // The other end of a point-to-point device needs no address.
    const auto direct = Create<Route>();
    direct->SetSource(source);
    direct->SetDestination(destination);
    direct->SetGateway(nextHop == nextHops.end() ? Address::GetAny() : nextHop->second);
    direct->SetOutputDevice(device);
    return direct;
}

template class Layer<Family4>;
template class Layer<Family6>;

} // namespace anabranch
