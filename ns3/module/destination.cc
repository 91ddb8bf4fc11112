// SPDX-License-Identifier: GPL-2.0-only
#include "destination.h"

#include "engine.h"

#include "ns3/abort.h"
#include "ns3/node.h"
#include "ns3/trace-source-accessor.h"

#include <sstream>

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Agent);
NS_OBJECT_ENSURE_REGISTERED(Destination);

const char* WordsOf(AnabranchCause cause)
{
    switch (cause) {
    case ANABRANCH_CAUSE_START:
        return "start";
    case ANABRANCH_CAUSE_THROUGHPUT:
        return "throughput out of range";
    case ANABRANCH_CAUSE_OFFERS:
        return "offers out of range";
    case ANABRANCH_CAUSE_LOSS:
        return "relay lost";
    case ANABRANCH_CAUSE_GOAL:
        return "new target";
    default:
        return "none";
    }
}

TypeId Agent::GetTypeId()
{
    static TypeId id = TypeId("anabranch::Agent").SetParent<Object>().SetGroupName("Anabranch");
    return id;
}

TypeId Destination::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::Destination")
            .SetParent<Agent>()
            .SetGroupName("Anabranch")
            .AddConstructor<Destination>()
            .AddTraceSource("Migration",
                            "Another set of relays is wanted.",
                            MakeTraceSourceAccessor(&Destination::migrationTrace),
                            "anabranch::Destination::MigrationTracedCallback")
            .AddTraceSource("Settled",
                            "Exactly the wanted subflows are established.",
                            MakeTraceSourceAccessor(&Destination::settledTrace),
                            "anabranch::Destination::PlainTracedCallback")
            .AddTraceSource("Offer",
                            "The offer of a relay arrived: what its link could carry, and what its owner uses of that.",
                            MakeTraceSourceAccessor(&Destination::offerTrace),
                            "anabranch::Destination::OfferTracedCallback")
            .AddTraceSource("ActiveSet",
                            "Number of subflows that carry new data.",
                            MakeTraceSourceAccessor(&Destination::activeSetTrace),
                            "anabranch::Destination::ActiveSetTracedCallback")
            .AddTraceSource("Guilty",
                            "A relay acknowledged data and did not deliver them; it is used no more.",
                            MakeTraceSourceAccessor(&Destination::guiltyTrace),
                            "anabranch::Destination::NodeTracedCallback");
    return id;
}

void Destination::SetUp(Ptr<Host> of, const std::string& json)
{
    host = of;
    settings = json;
}

void Destination::AddRelay(Ptr<Host> relay, Ptr<Node> node, Ipv4Address lent, Ipv4Address control, Ipv4Address callsFrom)
{
    NS_ABORT_MSG_IF(hasBegun, "InstallRelay: the destination speaks with its relays already; install all relays before "
                              "its first connection");
    relays.push_back({relay, node, lent, control, callsFrom});
}

void Destination::DoDispose()
{
    host = nullptr;
    sourceHost = nullptr;
    relays.clear();
    Agent::DoDispose();
}

std::string Destination::Peers(const AnabranchAddress& source) const
{
    std::ostringstream peers;
    peers << R"({"role": "destination", "source": ")" << TextOf(source) << R"(", "relays": [)";
    for (const Known& known : relays) {
        peers << (&known == relays.data() ? "" : ", ") << R"({"path": ")" << known.lent << R"(", "control": ")"
              << known.control << ':' << CONTROL_PORT << R"(", "calls_from": ")" << known.callsFrom << R"(", "key": ")"
              << known.host->GetPublicKey() << R"("})";
    }
    peers << ']';
    if (sourceHost) {
        AnabranchAddress control = source;
        control.port = CONTROL_PORT;
        peers << R"(, "source_agent": {"control": ")" << TextOf(control) << R"(", "key": ")"
              << sourceHost->GetPublicKey() << R"("})";
    }
    peers << '}';
    return peers.str();
}

// Late: by then the node has all its relays, and the source is known.
bool Destination::Begin(const AnabranchAddress& source)
{
    if (!hasBegun) {
        hasBegun = true;
        host->StartAgent(Peers(source), settings);
    }
    return isReady;
}

NodeContainer Destination::Nodes(const uint16_t* numbers, size_t count) const
{
    NodeContainer nodes;
    for (size_t at = 0; at < count; at++)
        nodes.Add(relays.at(numbers[at]).node);
    return nodes;
}

void Destination::Handle(const AnabranchAgentEvent& event)
{
    switch (event.kind) {
    case ANABRANCH_AGENT_EVENT_KIND_READY:
        isReady = true;
        break;
    case ANABRANCH_AGENT_EVENT_KIND_MIGRATION:
        migrationTrace({event.cause, Nodes(event.from, event.from_len), Nodes(event.to, event.to_len),
                        DataRate(event.offered_bps), event.flag});
        break;
    case ANABRANCH_AGENT_EVENT_KIND_SETTLED:
        settledTrace();
        break;
    case ANABRANCH_AGENT_EVENT_KIND_OFFERED:
        offerTrace(relays.at(event.relay).node, DataRate(event.capacity_bps), DataRate(event.local_bps));
        break;
    case ANABRANCH_AGENT_EVENT_KIND_ACTIVE_SET:
        activeSetTrace(static_cast<uint32_t>(event.count));
        break;
    case ANABRANCH_AGENT_EVENT_KIND_GUILTY:
        guiltyTrace(relays.at(event.relay).node);
        break;
    default:
        break;
    }
}

} // namespace anabranch
