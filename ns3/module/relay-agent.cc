// SPDX-License-Identifier: GPL-2.0-only
#include "relay-agent.h"

#include "engine.h"

#include "ns3/ipv4.h"
#include "ns3/ipv6.h"
#include "ns3/node.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

#include <algorithm>
#include <sstream>

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(RelayAgent);

TypeId RelayAgent::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::RelayAgent")
            .SetParent<Agent>()
            .SetGroupName("Anabranch")
            .AddConstructor<RelayAgent>()
            .AddTraceSource("Offer",
                            "It made an offer: what its link could carry, and what its owner uses of that.",
                            MakeTraceSourceAccessor(&RelayAgent::offerTrace),
                            "anabranch::RelayAgent::OfferTracedCallback")
            .AddTraceSource("Caller",
                            "A destination has called and proven its identity, or has left.",
                            MakeTraceSourceAccessor(&RelayAgent::callerTrace),
                            "anabranch::RelayAgent::CallerTracedCallback");
    return id;
}

void RelayAgent::SetUp(const Parts& of)
{
    parts = of;
    modem = ModemOf(parts.cellular);
    const Ptr<Node> node = parts.cellular->GetNode();
    if (const auto ipv4 = node->GetObject<Ipv4>())
        ipv4->TraceConnectWithoutContext("Rx", MakeCallback(&RelayAgent::Count<Family4>, this));
    if (const auto ipv6 = node->GetObject<Ipv6>())
        ipv6->TraceConnectWithoutContext("Rx", MakeCallback(&RelayAgent::Count<Family6>, this));
    Simulator::ScheduleNow(&RelayAgent::Start, this);
}

void RelayAgent::DoDispose()
{
    parts = Parts();
    modem = nullptr;
    Agent::DoDispose();
}

// When the simulation begins: a program may fix random streams before.
void RelayAgent::Start()
{
    std::ostringstream peers;
    peers << R"({"role": "relay", "control": ")" << parts.control << ':' << CONTROL_PORT << R"(", "serves": [")"
          << parts.destination->GetPublicKey() << R"("], "path": ")" << parts.relay->GetLent() << R"("})";
    parts.host->StartAgent(peers.str(), parts.settings);
    if (GetTransit().takes_packets)
        parts.relay->PassThrough(parts.host);
}

AnabranchTransit RelayAgent::GetTransit() const
{
    AnabranchTransit transit = {};
    Require(anabranch_transit(parts.host->GetEngine(), &transit), "anabranch_transit");
    return transit;
}

uint32_t RelayAgent::GetSplices() const
{
    return static_cast<uint32_t>(GetTransit().splices);
}

uint64_t RelayAgent::GetHeldBytes() const
{
    return GetTransit().held_bytes;
}

template <class Family>
void RelayAgent::Count(Ptr<const Packet> packet, Ptr<typename Family::Ip> ip, uint32_t interface)
{
    if (ip->GetNetDevice(interface) != parts.cellular)
        return;
    deliveredBytes += packet->GetSize();
    const Ptr<Packet> payload = packet->Copy();
    typename Family::Header header;
    payload->RemoveHeader(header);
    if (!parts.relay->IsForDestination(*payload, header))
        flows.Count(*payload, header);
}

void RelayAgent::Measure()
{
    const LinkState state = modem();
    AnabranchLinkUse use = {};
    use.delivered_bytes = deliveredBytes;
    use.local_bytes = deliveredBytes - std::min(deliveredBytes, parts.relay->GetPassedOnBytes());
    use.granted_bps = state.granted.GetBitRate();
    use.has_granted = use.granted_bps > 0;
    use.backlogged = state.isBacklogged;
    use.flows = flows.Get().data();
    use.flows_len = flows.Get().size();
    Require(anabranch_measure(parts.host->GetEngine(), &use, NowNs()), "anabranch_measure");
}

void RelayAgent::Handle(const AnabranchAgentEvent& event)
{
    switch (event.kind) {
    case ANABRANCH_AGENT_EVENT_KIND_MEASURE:
        Measure();
        break;
    case ANABRANCH_AGENT_EVENT_KIND_OFFERED:
        offerTrace(DataRate(event.capacity_bps), DataRate(event.local_bps));
        break;
    case ANABRANCH_AGENT_EVENT_KIND_CALLED:
        callerTrace(true);
        break;
    case ANABRANCH_AGENT_EVENT_KIND_DESERTED:
        callerTrace(false);
        break;
    default:
        break;
    }
}

} // namespace anabranch
