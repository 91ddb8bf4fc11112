// SPDX-License-Identifier: GPL-2.0-only
// A relay that lends the address of its cellular link to a destination on its local network.
#pragma once

#include "family.h"

#include "ns3/ip-l4-protocol.h"

#include <set>
#include <tuple>

namespace anabranch {

class Host;

// The address of one family that a relay lends, and the connections that come from it.
template <class Family>
class Loan {
public:
    using Ip = typename Family::Ip;
    using Address = typename Family::Address;
    using Header = typename Family::Header;

    void Begin(ns3::Ptr<Ip> ip, Address address, ns3::Ptr<ns3::NetDevice> device, Address borrower);
    void End();
    // From now on, the destination's packets pass the agent of this engine.
    void PassThrough(ns3::Ptr<Host> engine) { onTheWay = engine; }
    // Returns whether a packet of TCP that arrives at the relay is for the destination.
    bool IsForBorrower(const ns3::Packet& packet, const Header& header) const;
    // Returns whether a packet is from somebody who has a connection with the destination, to the lent address.
    bool IsFromBorrowersPeer(const Header& header) const;
    // Passes a packet that came by the device `from` on if it is for the destination; returns whether it is.
    bool PassOn(const ns3::Packet& packet, const Header& header, ns3::Ptr<ns3::NetDevice> from);
    // Gives a packet to the agent if it is of the destination, for somebody else; returns whether it is.
    bool PassUp(const ns3::Packet& packet, const Header& header);
    // Octets of all packets that were for the destination and came by the link that is lent.
    uint64_t GetPassedOnBytes() const { return passedOnBytes; }
    Address GetAddress() const { return address; }
    ns3::Ptr<Ip> GetIp() const { return ip; }
    // To the destination.
    ns3::Ptr<typename Family::Route> GetRoute() const { return toBorrower; }

private:
    // The peer, its port, and the port at the lent address.
    using Flow = std::tuple<Address, uint16_t, uint16_t>;

    void Learn(const Header& header, ns3::Ptr<const ns3::Packet> packet, uint32_t interface);

    ns3::Ptr<Ip> ip;
    // Null if the relay's IP forwards.
    ns3::Ptr<Host> onTheWay;
    ns3::Ptr<typename Family::Route> toBorrower;
    Address address = Address::GetAny();
    std::set<Flow> flows;
    uint64_t passedOnBytes = 0;
};

// Routes: it changes no packet but the TTL. The destination uses the lent address as one of its own, and sends from it
// by way of the relay, whose IP forwards. Core networks such as ns-3's EPC deliver packets only to addresses of their
// UEs, so the relay gets the answers; it recognises the destination's connections by what it has forwarded, and leaves
// all other packets to its own TCP, which stays behind it. Where the relay's agent acknowledges at once, packets of IPv4
// pass the agent instead, both ways.
class Relay : public ns3::IpL4Protocol {
public:
    static ns3::TypeId GetTypeId();

    // Stands in front of the TCP of its node. `address` is lent to the station `borrower`, which is reached by
    // `device`. One address of each family.
    void Lend(ns3::Ptr<ns3::Ipv4> ipv4, ns3::Ipv4Address address, ns3::Ptr<ns3::NetDevice> device,
              ns3::Ipv4Address borrower);
    void Lend(ns3::Ptr<ns3::Ipv6> ipv6, ns3::Ipv6Address address, ns3::Ptr<ns3::NetDevice> device,
              ns3::Ipv6Address borrower);
    // Passes packets for `port` of `address` to the engine of the relay's agent.
    void Answer(ns3::Ptr<Host> engine, ns3::Ipv4Address address, uint16_t port);
    // From now on, the destination's packets of IPv4 pass the relay's agent.
    void PassThrough(ns3::Ptr<Host> engine);
    // Return whether a packet that arrives is for the destination, and not for the owner.
    bool IsForDestination(const ns3::Packet& packet, const ns3::Ipv4Header& header) const;
    bool IsForDestination(const ns3::Packet& packet, const ns3::Ipv6Header& header) const;
    // Returns how many octets of packets it has passed on to the destination so far, of those that came by the links
    // that are lent.
    uint64_t GetPassedOnBytes() const { return loan4.GetPassedOnBytes() + loan6.GetPassedOnBytes(); }
    // Returns the address of IPv4 that is lent; that of nobody (Ipv4Address::GetAny) if there is none.
    ns3::Ipv4Address GetLent() const { return loan4.GetAddress(); }

    int GetProtocolNumber() const override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                     ns3::Ptr<ns3::Ipv4Interface> interface) override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv6Header& header,
                     ns3::Ptr<ns3::Ipv6Interface> interface) override;
    void ReceiveIcmp(ns3::Ipv4Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode,
                     uint32_t icmpInfo, ns3::Ipv4Address payloadSource, ns3::Ipv4Address payloadDestination,
                     const uint8_t payload[8]) override;
    void ReceiveIcmp(ns3::Ipv6Address icmpSource, uint8_t icmpTtl, uint8_t icmpType, uint8_t icmpCode,
                     uint32_t icmpInfo, ns3::Ipv6Address payloadSource, ns3::Ipv6Address payloadDestination,
                     const uint8_t payload[8]) override;
    void SetDownTarget(DownTargetCallback callback) override;
    void SetDownTarget6(DownTargetCallback6 callback) override;
    DownTargetCallback GetDownTarget() const override;
    DownTargetCallback6 GetDownTarget6() const override;

protected:
    void DoDispose() override;

private:
    template <class Ip>
    void StandBefore(ns3::Ptr<Ip> ip);

    bool IsForAgent(const ns3::Packet& packet, const ns3::Ipv4Header& header) const;

    ns3::Ptr<ns3::IpL4Protocol> own;
    ns3::Ptr<Host> agentsEngine;
    ns3::Ipv4Address agentsAddress;
    uint16_t agentsPort = 0;
    Loan<Family4> loan4;
    Loan<Family6> loan6;
};

} // namespace anabranch
