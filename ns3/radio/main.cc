// SPDX-License-Identifier: GPL-2.0-only
// Simulates the radio of a run: `anabranch run --backend ns3` starts this program and talks to it over pipes.
//
// Settings, a line each, then `begin`; the answer is `ready`:
//
//   seed N
//   cell SCHEDULER BLOCKS TX_DBM NOISE_DB EXPONENT REFERENCE_DB QUEUE_BYTES CORE_BPS CORE_DELAY_NS [FADING_FILE]
//   ue DISTANCE_M                                     one for each relay
//   wlan STATIONS MBPS QUEUE_PACKETS RTS_BYTES
//
// Then, with times in ns since `ready`:
//
//   c FROM TO NUMBER OCTETS     a packet enters the cell at a gate
//   w FROM TO NUMBER OCTETS     a packet enters the channel
//   r UNTIL                     runs up to this time, or to the first time at which a packet arrives; the answer is a
//                               line `c FROM TO NUMBER` or `w FROM TO NUMBER` for each of these, and `t TIME`
//
// The end of the input ends it.
#include "cell.h"
#include "wlan.h"

#include "ns3/core-module.h"

#include <iostream>
#include <memory>
#include <sstream>

using namespace ns3;

namespace {

// By this time the UEs are attached.
constexpr int64_t ATTACHED_NS = 1'000'000'000;

class Radio : public radio::Listener {
public:
    void Read(std::istream& in, std::ostream& out);
    void Arrive(const radio::Arrival& arrival) override;

private:
    void Set(const std::string& word, std::istringstream& line);
    void Begin();
    void RunUntil(int64_t untilNs, std::ostream& out);

    radio::CellSettings cellSettings;
    radio::WlanSettings wlanSettings;
    bool hasCell = false, hasWlan = false;
    std::unique_ptr<radio::Cell> cell;
    std::unique_ptr<radio::Wlan> wlan;
    std::vector<radio::Arrival> arrived;
};

template <typename... Values>
void Parse(std::istringstream& line, Values&... values)
{
    (line >> ... >> values);
    NS_ABORT_MSG_IF(line.fail(), "not understood: " << line.str());
}

void Radio::Set(const std::string& word, std::istringstream& line)
{
    if (word == "seed") {
        uint64_t run = 0;
        Parse(line, run);
        RngSeedManager::SetRun(run);
    } else if (word == "cell") {
        radio::CellSettings& set = cellSettings;
        Parse(line, set.scheduler, set.resourceBlocks, set.txPowerDbm, set.noiseFigureDb, set.pathLossExponent,
              set.referenceLossDb, set.queueBytes, set.coreRateBps, set.coreDelayNs);
        std::getline(line >> std::ws, set.fading);
        hasCell = true;
    } else if (word == "ue") {
        Parse(line, cellSettings.distancesM.emplace_back());
    } else if (word == "wlan") {
        radio::WlanSettings& set = wlanSettings;
        Parse(line, set.stations, set.rateMbps, set.queuePackets, set.rtsThresholdBytes);
        hasWlan = true;
    } else {
        NS_ABORT_MSG("not understood: " << line.str());
    }
}

void Radio::Arrive(const radio::Arrival& arrival)
{
    arrived.push_back(arrival);
    Simulator::Stop();
}

void Radio::Begin()
{
    if (hasCell)
        cell = std::make_unique<radio::Cell>(cellSettings, this);
    if (hasWlan)
        wlan = std::make_unique<radio::Wlan>(wlanSettings, this);
    Simulator::Stop(NanoSeconds(ATTACHED_NS));
    Simulator::Run();
}

void Radio::RunUntil(int64_t untilNs, std::ostream& out)
{
    const Time span = NanoSeconds(ATTACHED_NS + untilNs) - Simulator::Now();
    const EventId end = Simulator::Schedule(span, [] { Simulator::Stop(); });
    Simulator::Run();
    Simulator::Cancel(end);
    for (const radio::Arrival& arrival : arrived)
        out << arrival.medium << ' ' << arrival.from << ' ' << arrival.to << ' ' << arrival.number << '\n';
    arrived.clear();
    out << "t " << Simulator::Now().GetNanoSeconds() - ATTACHED_NS << std::endl;
}

void Radio::Read(std::istream& in, std::ostream& out)
{
    bool hasBegun = false;
    for (std::string text; std::getline(in, text);) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        uint32_t from = 0, to = 0, bytes = 0;
        uint64_t number = 0;
        int64_t untilNs = 0;
        if (!hasBegun && word == "begin") {
            Begin();
            hasBegun = true;
            out << "ready" << std::endl;
        } else if (!hasBegun) {
            Set(word, line);
        } else if (word == "c" && cell) {
            Parse(line, from, to, number, bytes);
            cell->Send(from, to, number, bytes);
        } else if (word == "w" && wlan) {
            Parse(line, from, to, number, bytes);
            wlan->Send(from, to, number, bytes);
        } else if (word == "r") {
            Parse(line, untilNs);
            RunUntil(untilNs, out);
        } else {
            NS_ABORT_MSG("not understood: " << text);
        }
    }
}

} // namespace

int main()
{
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    Radio().Read(std::cin, std::cout);
    Simulator::Destroy();
}
