// SPDX-License-Identifier: GPL-2.0-only
#include "relay.h"

#include "engine.h"
#include "host.h"
#include "subflows.h"
#include "transit.h"

#include "ns3/ipv4-interface.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/ipv6-interface.h"
#include "ns3/log.h"

#include <algorithm>

using namespace ns3;

NS_LOG_COMPONENT_DEFINE("AnabranchRelay");

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Relay);

namespace {

// RFC 9293 section 3.1, octets.
constexpr uint32_t TCP_HEADER_MIN = 20;

// A packet that was put together from fragments still has the header of the first one.
void Forward(const Ptr<Ipv4>& ip, const Ptr<Packet>& packet, const Ipv4Header& header, const Ptr<Ipv4Route>& route)
{
    Ipv4Header onward = header;
    onward.SetTtl(header.GetTtl() - 1);
    onward.SetPayloadSize(static_cast<uint16_t>(packet->GetSize()));
    onward.SetLastFragment();
    onward.SetFragmentOffset(0);
    ip->SendWithHeader(packet, onward, route);
}

// ns-3's IPv6 writes the header itself.
void Forward(const Ptr<Ipv6>& ip, const Ptr<Packet>& packet, const Ipv6Header& header, const Ptr<Ipv6Route>& route)
{
    Marks marks = Family6::MarksOf(header);
    marks.ttl--;
    Family6::Mark(packet, marks);
    ip->Send(packet, header.GetSource(), header.GetDestination(), PROTOCOL_TCP, route);
}

uint8_t ProtocolOf(const Ipv4Header& header)
{
    return header.GetProtocol();
}

uint8_t ProtocolOf(const Ipv6Header& header)
{
    return header.GetNextHeader();
}

bool IsLaterFragment(const Ipv4Header& header)
{
    return header.GetFragmentOffset() > 0;
}

// Fragments of IPv6 are of a protocol of their own (RFC 8200 section 4.5).
bool IsLaterFragment(const Ipv6Header&)
{
    return false;
}

} // namespace

template <class Family>
void Loan<Family>::Begin(Ptr<Ip> of, Address lent, Ptr<NetDevice> device, Address borrower)
{
    NS_ABORT_MSG_IF(ip, "Lend: this relay already lends " << address);
    ip = of;
    address = lent;
    toBorrower = Create<typename Family::Route>();
    toBorrower->SetSource(ip->GetAddress(ip->GetInterfaceForDevice(device), 0).GetAddress());
    toBorrower->SetDestination(lent);
    toBorrower->SetGateway(borrower);
    toBorrower->SetOutputDevice(device);
    ip->TraceConnectWithoutContext("UnicastForward", MakeCallback(&Loan::Learn, this));
}

template <class Family>
void Loan<Family>::End()
{
    if (ip)
        ip->TraceDisconnectWithoutContext("UnicastForward", MakeCallback(&Loan::Learn, this));
    ip = nullptr;
    onTheWay = nullptr;
    toBorrower = nullptr;
}

template <class Family>
void Loan<Family>::Learn(const Header& header, Ptr<const Packet> packet, uint32_t)
{
    const bool hasPorts = !IsLaterFragment(header) && packet->GetSize() >= TCP_HEADER_MIN;
    if (header.GetSource() != address || ProtocolOf(header) != PROTOCOL_TCP || !hasPorts)
        return;
    const auto [port, remotePort] = PortsOf(*packet);
    if (flows.emplace(header.GetDestination(), remotePort, port).second)
        NS_LOG_LOGIC("lends " << address << " port " << port << " towards " << header.GetDestination());
}

template <class Family>
bool Loan<Family>::IsForBorrower(const Packet& packet, const Header& header) const
{
    if (!ip || header.GetDestination() != address)
        return false;
    const auto [remotePort, port] = PortsOf(packet);
    return flows.count(Flow(header.GetSource(), remotePort, port)) > 0;
}

template <class Family>
bool Loan<Family>::IsFromBorrowersPeer(const Header& header) const
{
    const auto isPeer = [&header](const Flow& flow) { return std::get<0>(flow) == header.GetSource(); };
    return ip && header.GetDestination() == address && std::any_of(flows.begin(), flows.end(), isPeer);
}

template <class Family>
bool Loan<Family>::PassOn(const Packet& packet, const Header& header, Ptr<NetDevice> from)
{
    if (!IsForBorrower(packet, header))
        return false;
    // What comes another way takes nothing of the link.
    if (from == ip->GetNetDevice(ip->GetInterfaceForAddress(address)))
        passedOnBytes += packet.GetSize() + header.GetSerializedSize();
    if (Family::MarksOf(header).ttl <= 1)
        return true;
    if (onTheWay)
        onTheWay->PassOn(packet, header);
    else
        Forward(ip, packet.Copy(), header, toBorrower);
    return true;
}

template <class Family>
bool Loan<Family>::PassUp(const Packet& packet, const Header& header)
{
    const bool isPassing = onTheWay && header.GetSource() == address;
    if (!isPassing || ip->GetInterfaceForAddress(header.GetDestination()) >= 0)
        return false;
    Learn(header, packet.Copy(), 0);
    if (Family::MarksOf(header).ttl > 1)
        onTheWay->PassOn(packet, header);
    return true;
}

TypeId Relay::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::Relay").SetParent<IpL4Protocol>().SetGroupName("Anabranch").AddConstructor<Relay>();
    return id;
}

// The TCP of a node is the same for both families.
template <class Ip>
void Relay::StandBefore(Ptr<Ip> ip)
{
    const Ptr<IpL4Protocol> tcp = ip->GetProtocol(PROTOCOL_TCP);
    if (tcp) {
        own = tcp;
        ip->Remove(tcp);
    }
    ip->Insert(this);
}

void Relay::Lend(Ptr<Ipv4> ipv4, Ipv4Address address, Ptr<NetDevice> device, Ipv4Address borrower)
{
    loan4.Begin(ipv4, address, device, borrower);
    StandBefore(ipv4);
}

void Relay::Lend(Ptr<Ipv6> ipv6, Ipv6Address address, Ptr<NetDevice> device, Ipv6Address borrower)
{
    loan6.Begin(ipv6, address, device, borrower);
    StandBefore(ipv6);
    // As hosts do by default for IPv4.
    ipv6->SetForwarding(ipv6->GetInterfaceForDevice(device), true);
}

void Relay::PassThrough(Ptr<Host> engine)
{
    loan4.PassThrough(engine);
    Transit::Install(loan4.GetIp(), loan4.GetRoute()->GetOutputDevice(), loan4.GetAddress());
    engine->SetOnward(loan4.GetAddress(), loan4.GetRoute());
}

bool Relay::IsForDestination(const Packet& packet, const Ipv4Header& header) const
{
    if (ProtocolOf(header) != PROTOCOL_TCP)
        return false;
    // Later fragments have no ports.
    return IsLaterFragment(header) ? loan4.IsFromBorrowersPeer(header) : loan4.IsForBorrower(packet, header);
}

bool Relay::IsForDestination(const Packet& packet, const Ipv6Header& header) const
{
    return ProtocolOf(header) == PROTOCOL_TCP && loan6.IsForBorrower(packet, header);
}

void Relay::Answer(Ptr<Host> engine, Ipv4Address address, uint16_t port)
{
    agentsEngine = engine;
    agentsAddress = address;
    agentsPort = port;
}

bool Relay::IsForAgent(const Packet& packet, const Ipv4Header& header) const
{
    return agentsEngine && header.GetDestination() == agentsAddress && PortsOf(packet).second == agentsPort;
}

void Relay::DoDispose()
{
    agentsEngine = nullptr;
    loan4.End();
    loan6.End();
    own = nullptr;
    IpL4Protocol::DoDispose();
}

int Relay::GetProtocolNumber() const
{
    return PROTOCOL_TCP;
}

IpL4Protocol::RxStatus Relay::Receive(Ptr<Packet> packet, const Ipv4Header& header, Ptr<Ipv4Interface> interface)
{
    if (loan4.PassOn(*packet, header, interface->GetDevice()) || loan4.PassUp(*packet, header))
        return RX_OK;
    if (IsForAgent(*packet, header))
        return agentsEngine->Receive(packet, header, interface);
    return own ? own->Receive(packet, header, interface) : RX_ENDPOINT_UNREACH;
}

IpL4Protocol::RxStatus Relay::Receive(Ptr<Packet> packet, const Ipv6Header& header, Ptr<Ipv6Interface> interface)
{
    if (loan6.PassOn(*packet, header, interface->GetDevice()))
        return RX_OK;
    return own ? own->Receive(packet, header, interface) : RX_ENDPOINT_UNREACH;
}

void Relay::ReceiveIcmp(Ipv4Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode, uint32_t icmpInfo,
                        Ipv4Address payloadSource, Ipv4Address payloadDestination, const uint8_t payload[8])
{
    if (own)
        own->ReceiveIcmp(icmpSource, icmpTtl, icmpType, icmpCode, icmpInfo, payloadSource, payloadDestination, payload);
}

void Relay::ReceiveIcmp(Ipv6Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode, uint32_t icmpInfo,
                        Ipv6Address payloadSource, Ipv6Address payloadDestination, const uint8_t payload[8])
{
    if (own)
        own->ReceiveIcmp(icmpSource, icmpTtl, icmpType, icmpCode, icmpInfo, payloadSource, payloadDestination, payload);
}

// What is sent by this node's own TCP does not pass here.
void Relay::SetDownTarget(DownTargetCallback) {}

void Relay::SetDownTarget6(DownTargetCallback6) {}

IpL4Protocol::DownTargetCallback Relay::GetDownTarget() const
{
    return {};
}

IpL4Protocol::DownTargetCallback6 Relay::GetDownTarget6() const
{
    return {};
}

} // namespace anabranch
