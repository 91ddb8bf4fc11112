// SPDX-License-Identifier: GPL-2.0-only
#include "source.h"

#include "engine.h"

#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

#include <sstream>

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Source);

TypeId Source::GetTypeId()
{
    static TypeId id = TypeId("anabranch::Source")
                           .SetParent<Agent>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<Source>()
                           .AddTraceSource("Load",
                                           "A relay reports how crowded its link is: what its owner's flows want, over "
                                           "what is left for each of them.",
                                           MakeTraceSourceAccessor(&Source::loadTrace),
                                           "anabranch::Source::LoadTracedCallback")
                           .AddTraceSource("Delay",
                                           "A relay that acknowledges at once reports how long data take from it to the "
                                           "destination.",
                                           MakeTraceSourceAccessor(&Source::delayTrace),
                                           "anabranch::Source::DelayTracedCallback")
                           .AddTraceSource("Caller",
                                           "A destination has called and proven its identity, or has left.",
                                           MakeTraceSourceAccessor(&Source::callerTrace),
                                           "anabranch::Source::CallerTracedCallback");
    return id;
}

void Source::SetUp(Ptr<Host> of, std::vector<Ptr<Host>> served, const std::string& json)
{
    host = of;
    destinations = std::move(served);
    settings = json;
    Simulator::ScheduleNow(&Source::Start, this);
}

void Source::DoDispose()
{
    host = nullptr;
    destinations.clear();
    Agent::DoDispose();
}

// When the simulation begins: a program may fix random streams before.
void Source::Start()
{
    std::ostringstream peers;
    peers << R"({"role": "source", "control": "0.0.0.0:)" << CONTROL_PORT << R"(", "serves": [)";
    for (const Ptr<Host>& destination : destinations)
        peers << (&destination == destinations.data() ? "\"" : ", \"") << destination->GetPublicKey() << '"';
    peers << "]}";
    host->StartAgent(peers.str(), settings);
}

void Source::Handle(const AnabranchAgentEvent& event)
{
    switch (event.kind) {
    case ANABRANCH_AGENT_EVENT_KIND_LOAD:
        loadTrace(event.address_id, event.ratio);
        break;
    case ANABRANCH_AGENT_EVENT_KIND_DELAY:
        delayTrace(event.address_id, NanoSeconds(static_cast<int64_t>(event.delay_ns)));
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
