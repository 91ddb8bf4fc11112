// SPDX-License-Identifier: GPL-2.0-only
// A relay that lends the address of its cellular link to a destination on its local network.
#pragma once

#include "ns3/ip-l4-protocol.h"
#include "ns3/ipv4.h"
#include "ns3/ipv4-route.h"

#include <set>
#include <tuple>

namespace anabranch {

// Routes: it changes no packet but the TTL. The destination uses the lent address as one of its own, and sends from it
// by way of the relay, whose IPv4 forwards. Core networks such as ns-3's EPC deliver packets only to addresses of their
// UEs, so the relay gets the answers; it recognises the destination's connections by what it has forwarded, and leaves
// all other packets to its own TCP, which stays behind it.
class Relay : public ns3::IpL4Protocol {
public:
    static ns3::TypeId GetTypeId();

    // Stands in front of the TCP of its node. `address` is lent to the station `borrower`, which is reached by `device`.
    void Lend(ns3::Ptr<ns3::Ipv4> ipv4, ns3::Ipv4Address address, ns3::Ptr<ns3::NetDevice> device,
              ns3::Ipv4Address borrower);

    int GetProtocolNumber() const override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                     ns3::Ptr<ns3::Ipv4Interface> interface) override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv6Header& header,
                     ns3::Ptr<ns3::Ipv6Interface> interface) override;
    void ReceiveIcmp(ns3::Ipv4Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode, uint32_t icmpInfo,
                     ns3::Ipv4Address payloadSource, ns3::Ipv4Address payloadDestination,
                     const uint8_t payload[8]) override;
    void SetDownTarget(DownTargetCallback callback) override;
    void SetDownTarget6(DownTargetCallback6 callback) override;
    DownTargetCallback GetDownTarget() const override;
    DownTargetCallback6 GetDownTarget6() const override;

protected:
    void DoDispose() override;

private:
    // The peer, its port, and the port at the lent address.
    using Flow = std::tuple<ns3::Ipv4Address, uint16_t, uint16_t>;

    void Learn(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> packet, uint32_t interface);

    ns3::Ptr<ns3::Ipv4> ipv4;
    ns3::Ptr<ns3::IpL4Protocol> own;
    ns3::Ptr<ns3::Ipv4Route> toBorrower;
    ns3::Ipv4Address address;
    std::set<Flow> flows;
};

} // namespace anabranch
