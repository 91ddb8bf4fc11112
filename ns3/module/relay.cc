// SPDX-License-Identifier: GPL-2.0-only
#include "relay.h"

#include "ns3/ipv4-interface.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/ipv6-interface.h"
#include "ns3/log.h"
#include "ns3/tcp-header.h"

using namespace ns3;

NS_LOG_COMPONENT_DEFINE("AnabranchRelay");

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Relay);

namespace {

constexpr int PROTOCOL_TCP = 6;

} // namespace

TypeId Relay::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::Relay").SetParent<IpL4Protocol>().SetGroupName("Anabranch").AddConstructor<Relay>();
    return id;
}

void Relay::Lend(Ptr<Ipv4> of, Ipv4Address lent, Ptr<NetDevice> device, Ipv4Address borrower)
{
    NS_ABORT_MSG_IF(ipv4, "Lend: this relay already lends " << address);
    ipv4 = of;
    address = lent;
    own = ipv4->GetProtocol(PROTOCOL_TCP);
    if (own)
        ipv4->Remove(own);
    ipv4->Insert(this);
    toBorrower = Create<Ipv4Route>();
    toBorrower->SetSource(ipv4->GetAddress(ipv4->GetInterfaceForDevice(device), 0).GetLocal());
    toBorrower->SetDestination(lent);
    toBorrower->SetGateway(borrower);
    toBorrower->SetOutputDevice(device);
    ipv4->TraceConnectWithoutContext("UnicastForward", MakeCallback(&Relay::Learn, this));
}

void Relay::DoDispose()
{
    if (ipv4)
        ipv4->TraceDisconnectWithoutContext("UnicastForward", MakeCallback(&Relay::Learn, this));
    ipv4 = nullptr;
    own = nullptr;
    toBorrower = nullptr;
    IpL4Protocol::DoDispose();
}

void Relay::Learn(const Ipv4Header& header, Ptr<const Packet> packet, uint32_t)
{
    TcpHeader tcp;
    if (header.GetSource() != address || header.GetProtocol() != PROTOCOL_TCP || packet->PeekHeader(tcp) == 0)
        return;
    if (flows.emplace(header.GetDestination(), tcp.GetDestinationPort(), tcp.GetSourcePort()).second)
        NS_LOG_LOGIC("lends " << address << " port " << tcp.GetSourcePort() << " towards " << header.GetDestination());
}

int Relay::GetProtocolNumber() const
{
    return PROTOCOL_TCP;
}

IpL4Protocol::RxStatus Relay::Receive(Ptr<Packet> packet, const Ipv4Header& header, Ptr<Ipv4Interface> interface)
{
    TcpHeader tcp;
    packet->PeekHeader(tcp);
    const Flow flow(header.GetSource(), tcp.GetSourcePort(), tcp.GetDestinationPort());
    if (header.GetDestination() != address || flows.count(flow) == 0)
        return own ? own->Receive(packet, header, interface) : RX_ENDPOINT_UNREACH;
    if (header.GetTtl() <= 1)
        return RX_OK;
    Ipv4Header onward = header;
    onward.SetTtl(header.GetTtl() - 1);
    // A packet that was put together from fragments still has the header of the first one.
    onward.SetPayloadSize(static_cast<uint16_t>(packet->GetSize()));
    onward.SetLastFragment();
    onward.SetFragmentOffset(0);
    ipv4->SendWithHeader(packet->Copy(), onward, toBorrower);
    return RX_OK;
}

IpL4Protocol::RxStatus Relay::Receive(Ptr<Packet> packet, const Ipv6Header& header, Ptr<Ipv6Interface> interface)
{
    return own ? own->Receive(packet, header, interface) : RX_ENDPOINT_UNREACH;
}

void Relay::ReceiveIcmp(Ipv4Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode, uint32_t icmpInfo,
                        Ipv4Address payloadSource, Ipv4Address payloadDestination, const uint8_t payload[8])
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
