// SPDX-License-Identifier: GPL-2.0-only
// Agents on nodes: relays that report what they can spare, and a destination that chooses among them.
#include "case.h"

#include "../examples/phones.h"
#include "../examples/selection.h"

using namespace ns3;

namespace {

using Sets = std::vector<std::set<uint32_t>>;

// Keeps what the destination of a network reports.
struct Journal {
    explicit Journal(const selection::Network& network) : network(network)
    {
        network.destination->TraceConnectWithoutContext("Migration", MakeCallback(&Journal::NoteMigration, this));
        network.destination->TraceConnectWithoutContext("Settled", MakeCallback(&Journal::NoteSettled, this));
        network.destination->TraceConnectWithoutContext("Offer", MakeCallback(&Journal::NoteOffer, this));
        network.destination->TraceConnectWithoutContext("ActiveSet", MakeCallback(&Journal::NoteActiveSet, this));
    }

    void NoteMigration(const anabranch::Migration& migration)
    {
        std::set<uint32_t> set;
        for (uint32_t at = 0; at < migration.to.GetN(); at++)
            set.insert(network.NumberOf(migration.to.Get(at)));
        sets.push_back(set);
        timesS.push_back(Simulator::Now().GetSeconds());
        causes.push_back(anabranch::WordsOf(migration.cause));
    }

    void NoteSettled() { settled++; }
    void NoteActiveSet(uint32_t subflows) { active = subflows; }

    void NoteOffer(Ptr<Node> relay, DataRate capacity, DataRate local)
    {
        offers[network.NumberOf(relay)] = {capacity.GetBitRate() * 1e-6, local.GetBitRate() * 1e-6};
    }

    const selection::Network& network;
    Sets sets;
    std::vector<double> timesS;
    std::vector<std::string> causes;
    int settled = 0;
    uint32_t active = 0;
    // The latest offer of each relay: what the link could carry, and what its owner uses, Mbit/s.
    std::map<uint32_t, std::pair<double, double>> offers;
};

} // namespace

CASE(a_connection_begins_over_relays_that_reach_the_target)
{
    selection::Setup setup;
    setup.seconds = 20;
    selection::Network network(setup);
    Journal journal(network);
    const uint64_t bytes = network.Run();
    EXPECT(journal.sets == Sets({{3}}));
    EXPECT(journal.causes.front() == "start");
    EXPECT_OF(journal.settled, ==, 1);
    EXPECT_OF(journal.active, ==, 1U);
    EXPECT_OF(bytes * 8e-6 / setup.seconds, >, 2.7);
    EXPECT_OF(journal.offers.size(), ==, 4U);
    EXPECT_OF(journal.offers[1].first, ==, 1.4);
    EXPECT_OF(journal.offers[1].second, ==, 0.0);
}

CASE(a_family_of_which_a_destination_has_no_address_is_an_error_of_the_call)
{
    selection::Setup setup;
    selection::Network network(setup);
    const auto socket = ns3::Socket::CreateSocket(network.laptop.Get(0), TypeId::LookupByName(anabranch::SOCKETS));
    EXPECT(socket->Connect(Inet6SocketAddress(Ipv6Address("2001:db8::1"), 80)) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_NOROUTETOHOST);
}

CASE(another_set_is_chosen_when_the_traffic_of_an_owner_begins)
{
    selection::Setup setup;
    setup.owners = {{3, "1500kbps", 10.5}};
    selection::Network network(setup);
    Journal journal(network);
    network.Run();
    EXPECT_OF(journal.sets.size(), >=, 2U);
    EXPECT(journal.sets.front() == std::set<uint32_t>({3}));
    EXPECT_OF(journal.timesS[1], >, 10.5);
    EXPECT_OF(journal.timesS[1], <, 14.5);
    // Its datagrams have 28 octets of headers.
    EXPECT_OF(std::abs(journal.offers[3].second - 1.5 * 1.028), <, 0.01);
    EXPECT_OF(journal.offers[3].first, ==, 3.0);
    EXPECT_OF(journal.active, >, 1U);
}

CASE(another_set_is_chosen_when_a_link_degrades)
{
    selection::Setup setup;
    setup.changes = {{3, "500kbps", 10.5}};
    selection::Network network(setup);
    Journal journal(network);
    network.Run();
    EXPECT_OF(journal.sets.size(), >=, 2U);
    EXPECT_OF(journal.timesS[1], >, 10.5);
    EXPECT_OF(journal.timesS[1], <, 14.5);
    EXPECT_OF(journal.sets[1].count(3), ==, 0U);
    EXPECT_OF(journal.offers[3].first, ==, 0.5);
}

CASE(a_connection_begins_over_a_relay_whose_network_is_up)
{
    selection::Setup setup;
    setup.agents = "{}";
    setup.seconds = 10;
    selection::Network network(setup);
    network.laptop.Get(0)->GetObject<Ipv4>()->SetDown(1);
    // All relays but the first: 6.4 Mbit/s.
    EXPECT_OF(network.Run() * 8e-6 / setup.seconds, >, 4.0);
}

namespace {

anabranch::LinkState Nothing()
{
    return {DataRate("1bps"), false};
}

} // namespace

CASE(a_program_can_say_what_a_modem_reports)
{
    selection::Setup setup;
    setup.seconds = 10;
    selection::Network network(setup);
    network.agents[3]->SetModem(&Nothing);
    Journal journal(network);
    network.Run();
    EXPECT_OF(journal.sets.front().count(3), ==, 0U);
}

CASE(a_relay_has_settings_of_its_own)
{
    selection::Setup setup;
    setup.seconds = 10;
    setup.relayAgents[3] = R"({"relay": {"exaggerates": 0}})";
    selection::Network network(setup);
    Journal journal(network);
    network.Run();
    EXPECT_OF(journal.sets.front().count(3), ==, 0U);
    EXPECT_OF(journal.offers[3].first, ==, 0.0);
}

CASE(without_a_target_all_relays_carry_data)
{
    selection::Setup setup;
    setup.seconds = 20;
    setup.agents = "{}";
    selection::Network network(setup);
    Journal journal(network);
    EXPECT_OF(network.Run() * 8e-6 / setup.seconds, >, 5.5);
    EXPECT(journal.sets.empty());
}

namespace {

// The owner of relay 3 receives a file in the middle of the download; returns how much of it has arrived.
uint64_t OwnersFile(selection::Network& network, const char* factory)
{
    const InetSocketAddress any(Ipv4Address::GetAny(), selection::OWNERS_PORT);
    const auto sink = DynamicCast<PacketSink>(PacketSinkHelper(factory, any).Install(network.relays.Get(3)).Get(0));
    BulkSendHelper source("anabranch::SocketFactory", InetSocketAddress(network.LentBy(3), selection::OWNERS_PORT));
    source.SetAttribute("MaxBytes", UintegerValue(1'000'000));
    source.Install(network.server).Start(Seconds(5));
    network.Run();
    return sink->GetTotalRx();
}

} // namespace

CASE(owners_of_relays_with_agents_keep_their_own_tcp)
{
    selection::Network network(selection::Setup{});
    Journal journal(network);
    EXPECT_OF(OwnersFile(network, "ns3::TcpSocketFactory"), ==, 1'000'000U);
    EXPECT_OF(journal.offers.size(), ==, 4U);
    EXPECT_OF(journal.sets.size(), >=, 2U);
}

CASE(owners_of_relays_with_agents_may_use_the_engine)
{
    selection::Setup setup;
    setup.relaysHaveEngines = true;
    selection::Network network(setup);
    Journal journal(network);
    EXPECT_OF(OwnersFile(network, anabranch::SOCKETS), ==, 1'000'000U);
    EXPECT_OF(journal.offers.size(), ==, 4U);
    EXPECT_OF(journal.sets.size(), >=, 2U);
}

namespace {

struct Chosen {
    uint32_t largest = 0;
    void Note(const anabranch::Migration& migration) { largest = std::max(largest, migration.to.GetN()); }
};

} // namespace

CASE(phones_are_chosen_by_what_their_lte_links_carry)
{
    Chosen chosen;
    phones::Setup setup;
    setup.seconds = 5;
    setup.phones = 3;
    setup.agents = R"({"target": {"bit_rate": "8 Mbit/s"}, "cooperation": {"selection": {"method": "ssrs"}}})";
    setup.watch = [&chosen](Ptr<anabranch::Destination> destination) {
        destination->TraceConnectWithoutContext("Migration", MakeCallback(&Chosen::Note, &chosen));
    };
    const double rate = phones::Run(setup);
    EXPECT_OF(rate, >, 5.0);
    EXPECT_OF(chosen.largest, >, 0U);
    EXPECT_OF(chosen.largest, <, 3U);
}
