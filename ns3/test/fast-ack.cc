// SPDX-License-Identifier: GPL-2.0-only
// Relays that acknowledge at once: the destination's packets pass their agents.
#include "streams.h"

#include "../examples/phones.h"
#include "../examples/selection.h"

using namespace ns3;

namespace {

const std::string FAST_ACK = R"({"cooperation": {"relays": "fast-ack"}})";

selection::Setup Setup(const std::string& agents)
{
    selection::Setup setup;
    setup.agents = agents;
    setup.rates = {"3Mbps", "3Mbps"};
    setup.seconds = 20;
    return setup;
}

// The rate of a download, Mbit/s.
double RateOf(const selection::Setup& setup)
{
    selection::Network network(setup);
    const double rate = network.Run() * 8e-6 / setup.seconds;
    for (const auto& agent : network.agents)
        EXPECT_OF(agent->GetSplices(), ==, setup.agents == FAST_ACK ? 1U : 0U);
    Simulator::Destroy();
    return rate;
}

} // namespace

CASE(losses_of_local_links_do_not_reach_the_server)
{
    selection::Setup routed = Setup("{}"), spliced = Setup(FAST_ACK);
    EXPECT_OF(RateOf(routed), >, 5.5);
    routed.localLoss = spliced.localLoss = 0.01;
    EXPECT_OF(RateOf(routed), <, 4.0);
    EXPECT_OF(RateOf(spliced), >, 5.2);
}

namespace {

uint32_t SplicesOf(const selection::Network& network)
{
    uint32_t splices = 0;
    for (const auto& agent : network.agents)
        splices += agent->GetSplices();
    return splices;
}

void Note(const selection::Network* network, uint32_t* splices)
{
    *splices = SplicesOf(*network);
}

// Carries octets from one end of a network to the other, and returns how many arrived intact, in order, with an end.
uint64_t Carry(selection::Network& network, const Ptr<Node>& from, const Ptr<Node>& to, const Address& at,
               const Address& listensAt, double seconds)
{
    const TypeId sockets = TypeId::LookupByName(anabranch::SOCKETS);
    test::Receiver receiver{ns3::Socket::CreateSocket(to, sockets)};
    receiver.Listen(listensAt);
    test::Sender sender{ns3::Socket::CreateSocket(from, sockets), 2'000'000};
    sender.Connect(at);
    uint32_t splices = 0;
    Simulator::Schedule(Seconds(1), &Note, &network, &splices);
    test::RunFor(seconds);
    EXPECT_OF(splices, ==, 2U);
    EXPECT_OF(SplicesOf(network), ==, 0U);
    EXPECT(receiver.isIntact);
    EXPECT_OF(receiver.ends, ==, 1);
    EXPECT_OF(receiver.errors + sender.errors, ==, 0);
    return receiver.received;
}

uint64_t Upload(const selection::Setup& setup)
{
    selection::Network network(setup);
    const InetSocketAddress any(Ipv4Address::GetAny(), test::PORT);
    const InetSocketAddress at(network.ServerAddress(), test::PORT);
    return Carry(network, network.laptop.Get(0), network.server.Get(0), at, any, 30);
}

} // namespace

CASE(octets_pass_relays_that_acknowledge_at_once)
{
    EXPECT_OF(Upload(Setup(FAST_ACK)), ==, 2'000'000U);
}

// The relay puts them together before its agent gets them.
CASE(fragments_pass_relays_that_acknowledge_at_once)
{
    selection::Setup setup = Setup(FAST_ACK);
    setup.localMtu = 600;
    EXPECT_OF(Upload(setup), ==, 2'000'000U);
}

namespace {

struct Sets {
    std::vector<uint32_t> sizes;
    void Note(const anabranch::Migration& migration) { sizes.push_back(migration.to.GetN()); }
};

} // namespace

CASE(relays_that_acknowledge_at_once_are_chosen_like_others)
{
    selection::Setup setup;
    setup.agents = R"({"target": {"bit_rate": "3 Mbit/s"}, "cooperation": {"relays": "fast-ack",
                       "selection": {"method": "ssrs"}}})";
    setup.owners = {{3, "1500kbps", 10.5}};
    setup.localLoss = 0.01;
    Sets sets;
    selection::Network network(setup);
    network.destination->TraceConnectWithoutContext("Migration", MakeCallback(&Sets::Note, &sets));
    EXPECT_OF(network.Run() * 8e-6 / setup.seconds, >, 2.5);
    EXPECT_OF(sets.sizes.size(), >=, 2U);
    EXPECT_OF(sets.sizes.front(), ==, 1U);
    EXPECT_OF(SplicesOf(network), >=, 2U);
}

namespace {

// The owner of relay 0 receives a file during the download; returns how much of it has arrived.
uint64_t OwnersFile(const selection::Setup& setup, const char* factory)
{
    selection::Network network(setup);
    const InetSocketAddress any(Ipv4Address::GetAny(), selection::OWNERS_PORT);
    const auto sink = DynamicCast<PacketSink>(PacketSinkHelper(factory, any).Install(network.relays.Get(0)).Get(0));
    BulkSendHelper source(anabranch::SOCKETS, InetSocketAddress(network.LentBy(0), selection::OWNERS_PORT));
    source.SetAttribute("MaxBytes", UintegerValue(1'000'000));
    source.Install(network.server).Start(Seconds(5));
    network.Run();
    EXPECT_OF(network.agents[0]->GetSplices(), ==, 1U);
    return sink->GetTotalRx();
}

} // namespace

CASE(owners_of_relays_that_acknowledge_at_once_keep_their_own_tcp)
{
    EXPECT_OF(OwnersFile(Setup(FAST_ACK), "ns3::TcpSocketFactory"), ==, 1'000'000U);
}

CASE(owners_of_relays_that_acknowledge_at_once_may_use_the_engine)
{
    selection::Setup setup = Setup(FAST_ACK);
    setup.relaysHaveEngines = true;
    EXPECT_OF(OwnersFile(setup, anabranch::SOCKETS), ==, 1'000'000U);
}

CASE(phones_acknowledge_at_once)
{
    phones::Setup setup;
    setup.seconds = 2;
    setup.agents = FAST_ACK;
    EXPECT_OF(phones::Run(setup), >, 10.0);
}
