// SPDX-License-Identifier: GPL-2.0-only
#include "install.h"

#include "engine.h"
#include "socket-factory.h"

#include "ns3/node.h"

using namespace ns3;

namespace anabranch {

namespace {

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

// The place of a device in the IP of its node.
template <class Family>
struct Place {
    explicit Place(Ptr<NetDevice> device) : ip(device->GetNode()->GetObject<typename Family::Ip>())
    {
        const int32_t found = ip ? ip->GetInterfaceForDevice(device) : -1;
        interface = static_cast<uint32_t>(found);
        count = found < 0 ? 0 : ip->GetNAddresses(interface);
    }
    typename Family::Address Address(uint32_t index) const { return ip->GetAddress(interface, index).GetAddress(); }

    Ptr<typename Family::Ip> ip;
    uint32_t interface, count;
};

// Returns whether there is an address to lend: all three have the family.
template <class Family>
bool LendTo(Relay& relay, Ptr<NetDevice> cellular, Ptr<NetDevice> local, Ptr<NetDevice> borrowing)
{
    const Place<Family> lender(cellular), gateway(local), borrower(borrowing);
    uint32_t index = 0;
    while (index < lender.count && Family::IsLinkLocal(lender.Address(index)))
        index++;
    if (index == lender.count || gateway.count == 0 || borrower.count == 0)
        return false;
    const auto lent = lender.Address(index);
    relay.Lend(lender.ip, lent, local, borrower.Address(0));
    borrower.ip->AddAddress(borrower.interface, Family::Alone(lent));
    HostOf(borrowing->GetNode())->SetNextHop(lent, gateway.Address(0));
    return true;
}

Ptr<Destination> DestinationOf(Ptr<Node> node)
{
    const Ptr<Destination> destination = node->GetObject<Destination>();
    NS_ABORT_MSG_UNLESS(destination,
                        "node " << node->GetId() << " has no agent: use anabranch::InstallDestination first");
    return destination;
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
    const Ptr<Relay> relay = CreateObject<Relay>();
    const bool lends4 = LendTo<Family4>(*relay, cellular, local, borrowing);
    const bool lends6 = LendTo<Family6>(*relay, cellular, local, borrowing);
    NS_ABORT_MSG_UNLESS(lends4 || lends6,
                        "node " << cellular->GetNode()->GetId()
                                << " has nothing to lend: all three devices need an address of one family");
    return relay;
}

Ptr<Destination> InstallDestination(Ptr<Node> node, const std::string& settings)
{
    const Ptr<Host> host = HostOf(node);
    const Ptr<Destination> destination = CreateObject<Destination>();
    destination->SetUp(host, settings);
    host->SetAgent(destination);
    node->AggregateObject(destination);
    return destination;
}

Ptr<RelayAgent> InstallRelay(Ptr<NetDevice> cellular, Ptr<NetDevice> local, Ptr<NetDevice> borrowing,
                             const std::string& settings)
{
    const Ptr<Node> node = cellular->GetNode();
    const Ptr<Destination> destination = DestinationOf(borrowing->GetNode());
    const Ptr<Relay> relay = Lend(cellular, local, borrowing);
    NS_ABORT_MSG_IF(relay->GetLent() == Ipv4Address::GetAny(),
                    "node " << node->GetId() << ": agents need addresses of IPv4 on all three devices");
    RelayAgent::Parts parts = {node->GetObject<Host>(), relay, destination->GetHost(), cellular,
                               Place<Family4>(local).Address(0),
                               settings.empty() ? destination->GetSettings() : settings};
    if (!parts.host) {
        // The owner's TCP keeps its place.
        parts.host = CreateObject<Host>();
        parts.host->StandBehind(node);
        relay->Answer(parts.host, parts.control, CONTROL_PORT);
    }
    const Ptr<RelayAgent> agent = CreateObject<RelayAgent>();
    parts.host->SetAgent(agent);
    agent->SetUp(parts);
    node->AggregateObject(agent);
    destination->AddRelay(parts.host, node, relay->GetLent(), parts.control,
                          Place<Family4>(borrowing).Address(0));
    return agent;
}

Ptr<Source> InstallSource(Ptr<Node> node, const NodeContainer& destinations, const std::string& settings)
{
    const Ptr<Host> host = HostOf(node);
    std::vector<Ptr<Host>> served;
    std::string known = settings;
    for (auto at = destinations.Begin(); at != destinations.End(); ++at) {
        const Ptr<Destination> destination = DestinationOf(*at);
        destination->SetSource(host);
        served.push_back(destination->GetHost());
        if (known.empty())
            known = destination->GetSettings();
    }
    NS_ABORT_MSG_IF(served.empty(), "InstallSource: name a destination that it serves");
    const Ptr<Source> source = CreateObject<Source>();
    host->SetAgent(source);
    source->SetUp(host, std::move(served), known);
    node->AggregateObject(source);
    return source;
}

} // namespace anabranch
