// SPDX-License-Identifier: GPL-2.0-only
// The agent of a relay: what its link can spare, and what it does with packets on their way.
#pragma once

#include "agent.h"
#include "host.h"
#include "modem.h"
#include "owner-flows.h"
#include "relay.h"

#include "ns3/traced-callback.h"

#include <string>

namespace anabranch {

// `InstallRelay` (install.h) puts one on a node. It counts what arrives by the cellular device, tells from that what the
// owner uses, asks the modem what the link would carry, and offers the rest to the destination. If the settings want it,
// the destination's packets pass the agent, which acknowledges data at once.
class RelayAgent : public Agent {
public:
    static ns3::TypeId GetTypeId();

    // Signatures of the trace sources "Offer" and "Caller".
    typedef void (*OfferTracedCallback)(ns3::DataRate capacity, ns3::DataRate local);
    typedef void (*CallerTracedCallback)(bool isPresent);

    // Asks another modem than that of the cellular device (modem.h).
    void SetModem(Modem modem) { this->modem = std::move(modem); }

    // Returns how many subflows end here and continue from here.
    uint32_t GetSplices() const;
    // Returns how many octets the relay holds until the destination wants them.
    uint64_t GetHeldBytes() const;

    // For InstallRelay.
    struct Parts {
        ns3::Ptr<Host> host;
        ns3::Ptr<Relay> relay;
        ns3::Ptr<Host> destination;
        ns3::Ptr<ns3::NetDevice> cellular;
        // Where it answers.
        ns3::Ipv4Address control;
        std::string settings;
    };
    void SetUp(const Parts& parts);

    bool Begin(const AnabranchAddress&) override { return true; }
    bool ChoosesAddress() const override { return false; }
    void Handle(const AnabranchAgentEvent& event) override;

protected:
    void DoDispose() override;

private:
    void Start();
    AnabranchTransit GetTransit() const;
    void Measure();
    template <class Family>
    void Count(ns3::Ptr<const ns3::Packet> packet, ns3::Ptr<typename Family::Ip> ip, uint32_t interface);

    Parts parts;
    Modem modem;
    uint64_t deliveredBytes = 0;
    OwnerFlows flows;
    ns3::TracedCallback<ns3::DataRate, ns3::DataRate> offerTrace;
    ns3::TracedCallback<bool> callerTrace;
};

} // namespace anabranch
