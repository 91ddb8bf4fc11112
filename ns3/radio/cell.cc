// SPDX-License-Identifier: GPL-2.0-only
#include "cell.h"

#include "../agreement/models.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace radio {

namespace {

constexpr uint16_t WIRE_MTU = 9000;
// After this time each UE jumps to another place of the trace, as in ns3/agreement.
constexpr double FADING_WINDOW_S = 0.5;

// As in the set-ups of ns3/agreement, for which the built-in cell agrees with this one.
void SetDefaults(const CellSettings& settings)
{
    Config::SetDefault("ns3::LteAmc::AmcModel", EnumValue(LteAmc::PiroEW2010));
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(LteEnbRrc::RLC_UM_ALWAYS));
    Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(models::SoundingPeriodMs(settings.distancesM.size())));
    Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(settings.queueBytes));
    Config::SetDefault("ns3::LteEnbPhy::TxPower", DoubleValue(settings.txPowerDbm));
    Config::SetDefault("ns3::LteEnbPhy::NoiseFigure", DoubleValue(5));
    Config::SetDefault("ns3::LteUePhy::TxPower", DoubleValue(23));
    Config::SetDefault("ns3::LteUePhy::NoiseFigure", DoubleValue(settings.noiseFigureDb));
    Config::SetDefault("ns3::LteEnbNetDevice::DlBandwidth", UintegerValue(settings.resourceBlocks));
    Config::SetDefault("ns3::LteEnbNetDevice::UlBandwidth", UintegerValue(settings.resourceBlocks));
}

void SetPropagation(LteHelper& lte, const CellSettings& settings)
{
    if (settings.pathLossExponent > 0) {
        lte.SetAttribute("PathlossModel", TypeIdValue(LogDistancePropagationLossModel::GetTypeId()));
        lte.SetPathlossModelAttribute("Exponent", DoubleValue(settings.pathLossExponent));
        lte.SetPathlossModelAttribute("ReferenceLoss", DoubleValue(settings.referenceLossDb));
    }
    if (!settings.fading.empty())
        models::SetFading(lte, settings.fading, FADING_WINDOW_S);
}

} // namespace

Cell::Cell(const CellSettings& settings, Listener* listener)
    : lte(CreateObject<LteHelper>()), core(CreateObject<PointToPointEpcHelper>()), host(1), enb(1),
      ues(settings.distancesM.size())
{
    SetDefaults(settings);
    lte = CreateObject<LteHelper>();
    lte->SetEpcHelper(core);
    lte->SetSchedulerType(settings.scheduler);
    SetPropagation(*lte, settings);
    models::PlaceInARow(enb, ues, settings.distancesM);
    Connect(settings);
    sockets.push_back(OpenSocket(host.Get(0), 'c', 0, listener));
    for (uint32_t ue = 0; ue < ues.GetN(); ue++)
        sockets.push_back(OpenSocket(ues.Get(ue), 'c', ue + 1, listener));
}

void Cell::Connect(const CellSettings& settings)
{
    const NetDeviceContainer cells = lte->InstallEnbDevice(enb);
    const NetDeviceContainer devices = lte->InstallUeDevice(ues);
    InternetStackHelper internet;
    internet.Install(host);
    internet.Install(ues);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate(settings.coreRateBps)));
    wire.SetDeviceAttribute("Mtu", UintegerValue(WIRE_MTU));
    wire.SetChannelAttribute("Delay", TimeValue(NanoSeconds(settings.coreDelayNs)));
    wire.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, 10000)));
    const NetDeviceContainer ends = wire.Install(core->GetPgwNode(), host.Get(0));
    addresses.push_back(Ipv4AddressHelper("1.0.0.0", "255.0.0.0").Assign(ends).GetAddress(1));
    TrafficControlHelper().Uninstall(ends);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(host.Get(0)->GetObject<Ipv4>())->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    const Ipv4InterfaceContainer interfaces = core->AssignUeIpv4Address(devices);
    for (uint32_t ue = 0; ue < ues.GetN(); ue++) {
        const auto ipv4 = ues.Get(ue)->GetObject<Ipv4>();
        const int32_t interface = ipv4->GetInterfaceForDevice(devices.Get(ue));
        routing.GetStaticRouting(ipv4)->SetDefaultRoute(core->GetUeDefaultGatewayAddress(), interface);
        lte->Attach(devices.Get(ue), cells.Get(0));
        addresses.push_back(interfaces.GetAddress(ue));
    }
}

void Cell::Send(uint32_t from, uint32_t to, uint64_t number, uint32_t wireBytes)
{
    sockets.at(from)->SendTo(MakePacket(from, number, wireBytes), 0, InetSocketAddress(addresses.at(to), PORT));
}

} // namespace radio
