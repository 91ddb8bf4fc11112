// SPDX-License-Identifier: GPL-2.0-only
// The agent of a source: its windows follow what relays report of their links.
#pragma once

#include "agent.h"
#include "host.h"

#include "ns3/traced-callback.h"

#include <string>
#include <vector>

namespace anabranch {

// `InstallSource` (install.h) puts one on a node. Destinations pass on to it what their relays report: how crowded their
// links are, for controllers that share them, and how long data take from a relay that acknowledges at once.
class Source : public Agent {
public:
    static ns3::TypeId GetTypeId();

    // Signatures of the trace sources "Load", "Delay" and "Caller". A path is named by the identifier of the destination's
    // address (RFC 8684 section 3.2).
    typedef void (*LoadTracedCallback)(uint8_t path, double ratio);
    typedef void (*DelayTracedCallback)(uint8_t path, ns3::Time delay);
    typedef void (*CallerTracedCallback)(bool isPresent);

    // For InstallSource.
    void SetUp(ns3::Ptr<Host> host, std::vector<ns3::Ptr<Host>> destinations, const std::string& settings);

    bool Begin(const AnabranchAddress&) override { return true; }
    bool ChoosesAddress() const override { return false; }
    void Handle(const AnabranchAgentEvent& event) override;

protected:
    void DoDispose() override;

private:
    void Start();

    ns3::Ptr<Host> host;
    std::vector<ns3::Ptr<Host>> destinations;
    std::string settings;
    ns3::TracedCallback<uint8_t, double> loadTrace;
    ns3::TracedCallback<uint8_t, ns3::Time> delayTrace;
    ns3::TracedCallback<bool> callerTrace;
};

} // namespace anabranch
