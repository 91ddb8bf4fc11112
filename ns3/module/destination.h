// SPDX-License-Identifier: GPL-2.0-only
// The agent of a destination: which relays on its network carry data.
#pragma once

#include "agent.h"
#include "host.h"

#include "ns3/data-rate.h"
#include "ns3/node-container.h"
#include "ns3/traced-callback.h"

#include <string>
#include <vector>

namespace anabranch {

// A change of the wanted set of relays.
struct Migration {
    AnabranchCause cause;
    // Relays that were wanted before and are still there, and those that are wanted now.
    ns3::NodeContainer from, to;
    // What the latter offer, and whether that is in the accepted range.
    ns3::DataRate offered;
    bool isFeasible;
};

// The cause in words: "start", "throughput out of range", "offers out of range", "relay lost", "new target".
const char* WordsOf(AnabranchCause cause);

// `InstallDestination` (install.h) puts one on a node, `InstallRelay` adds relays. It begins to speak with them when an
// application of the node opens the first connection. That waits until every relay has offered something, or for a
// second. If relays are selected, the agent alone opens subflows of the first connection to the same server, and closes
// them.
class Destination : public Agent {
public:
    static ns3::TypeId GetTypeId();

    // Signatures of the trace sources "Migration", "Offer", "ActiveSet", "Guilty" and "Settled".
    typedef void (*MigrationTracedCallback)(const Migration& migration);
    typedef void (*OfferTracedCallback)(ns3::Ptr<ns3::Node> relay, ns3::DataRate capacity, ns3::DataRate local);
    typedef void (*ActiveSetTracedCallback)(uint32_t subflows);
    typedef void (*NodeTracedCallback)(ns3::Ptr<ns3::Node> relay);
    typedef void (*PlainTracedCallback)();

    // For InstallDestination and InstallRelay.
    void SetUp(ns3::Ptr<Host> host, const std::string& settings);
    void AddRelay(ns3::Ptr<Host> relay, ns3::Ptr<ns3::Node> node, ns3::Ipv4Address lent, ns3::Ipv4Address control,
                  ns3::Ipv4Address callsFrom);
    // For InstallSource: who answers for the source.
    void SetSource(ns3::Ptr<Host> host) { sourceHost = host; }
    const std::string& GetSettings() const { return settings; }
    ns3::Ptr<Host> GetHost() const { return host; }

    bool Begin(const AnabranchAddress& source) override;
    bool ChoosesAddress() const override { return !relays.empty(); }
    void Handle(const AnabranchAgentEvent& event) override;

protected:
    void DoDispose() override;

private:
    struct Known {
        ns3::Ptr<Host> host;
        ns3::Ptr<ns3::Node> node;
        ns3::Ipv4Address lent, control, callsFrom;
    };

    std::string Peers(const AnabranchAddress& source) const;
    ns3::NodeContainer Nodes(const uint16_t* numbers, size_t count) const;

    ns3::Ptr<Host> host;
    // Null if the source has no agent.
    ns3::Ptr<Host> sourceHost;
    std::string settings;
    std::vector<Known> relays;
    bool hasBegun = false, isReady = false;
    ns3::TracedCallback<const Migration&> migrationTrace;
    ns3::TracedCallback<ns3::Ptr<ns3::Node>, ns3::DataRate, ns3::DataRate> offerTrace;
    ns3::TracedCallback<uint32_t> activeSetTrace;
    ns3::TracedCallback<ns3::Ptr<ns3::Node>> guiltyTrace;
    ns3::TracedCallback<> settledTrace;
};

} // namespace anabranch
