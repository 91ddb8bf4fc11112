// SPDX-License-Identifier: GPL-2.0-only
#include "install.h"

#include "engine.h"
#include "socket-factory.h"

#include "ns3/node.h"

using namespace ns3;

namespace anabranch {

namespace {

Ptr<Ipv4> Ipv4Of(Ptr<Node> node)
{
    const Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
    NS_ABORT_MSG_UNLESS(ipv4, "node " << node->GetId() << " has no IPv4: use InternetStackHelper first");
    return ipv4;
}

// Its sockets would wait for answers that never come.
template <class Family>
void RefuseTcp(uint32_t node, Ptr<Packet>, typename Family::Address, typename Family::Address, uint8_t,
               Ptr<typename Family::Route>)
{
    NS_FATAL_ERROR("node " << node << " has the engine in the place of ns-3's TCP: its applications must name "
                           << SOCKETS << " instead of ns3::TcpSocketFactory");
}

template <class Family>
void RemoveTcp(Ptr<Node> node)
{
    const auto ip = node->GetObject<typename Family::Ip>();
    const Ptr<IpL4Protocol> tcp = ip ? ip->GetProtocol(PROTOCOL_TCP) : nullptr;
    NS_ABORT_MSG_IF(DynamicCast<Relay>(tcp), "node " << node->GetId() << " lends its link: install before Lend");
    if (!tcp)
        return;
    ip->Remove(tcp);
    tcp->SetDownTarget(MakeBoundCallback(&RefuseTcp<Family4>, node->GetId()));
    tcp->SetDownTarget6(MakeBoundCallback(&RefuseTcp<Family6>, node->GetId()));
}

// Returns the first address of a device, and its interface.
Ipv4Address AddressOf(Ptr<NetDevice> device, int32_t& interface)
{
    const Ptr<Ipv4> ipv4 = Ipv4Of(device->GetNode());
    interface = ipv4->GetInterfaceForDevice(device);
    NS_ABORT_MSG_UNLESS(interface >= 0 && ipv4->GetNAddresses(interface) > 0,
                        "a device of node " << device->GetNode()->GetId() << " has no address yet");
    return ipv4->GetAddress(interface, 0).GetLocal();
}

} // namespace

void Install(const NodeContainer& nodes)
{
    for (auto node = nodes.Begin(); node != nodes.End(); ++node) {
        NS_ABORT_MSG_IF((*node)->GetObject<Host>(), "node " << (*node)->GetId() << " has an engine already");
        NS_ABORT_MSG_UNLESS((*node)->GetObject<Ipv4>() || (*node)->GetObject<Ipv6>(),
                            "node " << (*node)->GetId() << " has no IP: use InternetStackHelper first");
        RemoveTcp<Family4>(*node);
        RemoveTcp<Family6>(*node);
        const Ptr<Host> host = CreateObject<Host>();
        const Ptr<SocketFactory> factory = CreateObject<SocketFactory>();
        factory->SetHost(host);
        (*node)->AggregateObject(host);
        (*node)->AggregateObject(factory);
    }
}

Ptr<Host> HostOf(Ptr<Node> node)
{
    const Ptr<Host> host = node->GetObject<Host>();
    NS_ABORT_MSG_UNLESS(host, "node " << node->GetId() << " has no engine: use anabranch::Install first");
    return host;
}

Ptr<Relay> Lend(Ptr<NetDevice> cellular, Ptr<NetDevice> local, Ptr<NetDevice> borrowing)
{
    int32_t ignored = 0, interface = 0;
    const Ipv4Address lent = AddressOf(cellular, ignored);
    const Ipv4Address gateway = AddressOf(local, ignored);
    const Ipv4Address borrower = AddressOf(borrowing, interface);
    const Ptr<Relay> relay = CreateObject<Relay>();
    relay->Lend(Ipv4Of(cellular->GetNode()), lent, local, borrower);
    const Ptr<Node> destination = borrowing->GetNode();
    Ipv4Of(destination)->AddAddress(interface, Ipv4InterfaceAddress(lent, Ipv4Mask::GetOnes()));
    HostOf(destination)->SetNextHop(lent, gateway);
    return relay;
}

} // namespace anabranch
