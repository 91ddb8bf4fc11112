// SPDX-License-Identifier: GPL-2.0-only
// What a node does to cooperate with others: the agents of the engine, on nodes.
#pragma once

#include "anabranch.h"

#include "ns3/object.h"

namespace anabranch {

// Where relays answer their destinations.
constexpr uint16_t CONTROL_PORT = 40001;

// Stands between the agent of a node's engine and the program. A host passes events on.
class Agent : public ns3::Object {
public:
    static ns3::TypeId GetTypeId();

    // A connection to `source` is wanted. Returns whether it may begin now; if not, the host waits until the agent is
    // ready.
    virtual bool Begin(const AnabranchAddress& source) = 0;
    // Returns whether the agent chooses the address from which connections begin.
    virtual bool ChoosesAddress() const = 0;
    virtual void Handle(const AnabranchAgentEvent& event) = 0;
};

} // namespace anabranch
