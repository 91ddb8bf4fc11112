// SPDX-License-Identifier: GPL-2.0-only
#include "modem.h"

#include "ns3/channel.h"
#include "ns3/lte-amc.h"
#include "ns3/lte-spectrum-value-helper.h"
#include "ns3/lte-ue-net-device.h"
#include "ns3/lte-ue-phy.h"
#include "ns3/lte-ue-rrc.h"
#include "ns3/node.h"
#include "ns3/pointer.h"
#include "ns3/queue-disc.h"
#include "ns3/queue.h"
#include "ns3/spectrum-value.h"
#include "ns3/traffic-control-layer.h"

#include <memory>

using namespace ns3;

namespace anabranch {

namespace {

// Subframes of LTE in a second.
constexpr uint64_t SUBFRAMES_PER_S = 1000;
// Resource blocks whose quality is judged together; as the channel is taken to be flat, any number would do.
constexpr uint8_t GROUP = 2;

Ptr<NetDevice> OtherEnd(const Ptr<NetDevice>& device)
{
    const Ptr<Channel> channel = device->GetChannel();
    if (!channel || channel->GetNDevices() != 2)
        return nullptr;
    return channel->GetDevice(channel->GetDevice(0) == device ? 1 : 0);
}

bool HasWaiting(const Ptr<NetDevice>& sender)
{
    PointerValue queue;
    if (sender->GetAttributeFailSafe("TxQueue", queue) && queue.Get<QueueBase>() &&
        queue.Get<QueueBase>()->GetNPackets() > 0)
        return true;
    const auto control = sender->GetNode()->GetObject<TrafficControlLayer>();
    const Ptr<QueueDisc> root = control ? control->GetRootQueueDiscOnDevice(sender) : nullptr;
    return root && root->GetNPackets() > 0;
}

// A rate of zero stands for a device that needs no time.
LinkState StateOfSender(const Ptr<NetDevice>& sender)
{
    DataRateValue rate;
    if (!sender->GetAttributeFailSafe("DataRate", rate))
        return {};
    return {rate.Get(), HasWaiting(sender)};
}

// What an LTE device has measured last; zero before. The device tells for as long as it lives, also after the modem is
// gone, so both hold it.
using Sinr = std::shared_ptr<double>;

void Note(Sinr sinr, uint16_t, uint16_t, double, double measured, uint8_t)
{
    *sinr = measured;
}

// The quality of the channel of an LTE device.
class Quality {
public:
    // Judged as the device does, by the model that the program sets for all (ns3::LteAmc::AmcModel).
    Quality(Ptr<LteUeNetDevice> device, Sinr sinr) : device(device), amc(CreateObject<LteAmc>()), sinr(sinr) {}

    LinkState State() const
    {
        const uint16_t resourceBlocks = device->GetRrc()->GetDlBandwidth();
        if (*sinr <= 0 || resourceBlocks == 0)
            return {};
        SpectrumValue flat(LteSpectrumValueHelper::GetSpectrumModel(device->GetDlEarfcn(), resourceBlocks));
        flat = *sinr;
        const int cqi = amc->CreateCqiFeedbacks(flat, GROUP).at(0);
        if (cqi <= 0)
            return {};
        const int bits = amc->GetDlTbSizeFromMcs(amc->GetMcsFromCqi(cqi), resourceBlocks);
        return {DataRate(static_cast<uint64_t>(bits) * SUBFRAMES_PER_S), false};
    }

private:
    Ptr<LteUeNetDevice> device;
    Ptr<LteAmc> amc;
    Sinr sinr;
};

Modem ModemOfLte(const Ptr<LteUeNetDevice>& device)
{
    const auto sinr = std::make_shared<double>(0);
    device->GetPhy()->TraceConnectWithoutContext("ReportCurrentCellRsrpSinr", MakeBoundCallback(&Note, sinr));
    return [quality = Quality(device, sinr)] { return quality.State(); };
}

} // namespace

Modem ModemOf(Ptr<NetDevice> device)
{
    if (const auto lte = DynamicCast<LteUeNetDevice>(device))
        return ModemOfLte(lte);
    return [device] {
        const Ptr<NetDevice> sender = OtherEnd(device);
        return sender ? StateOfSender(sender) : LinkState();
    };
}

} // namespace anabranch
