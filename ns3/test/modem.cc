// SPDX-License-Identifier: GPL-2.0-only
// Modems of LTE devices.
#include "case.h"

#include "../examples/phones.h"
#include "../module/modem.h"

using namespace ns3;

namespace {

// One device in the cell of one eNB.
struct Cell {
    Cell()
    {
        phones::Place(enb, node, 900);
        const auto [cells, ues] = phones::InstallLte(*lte, enb, node);
        device = ues.Get(0);
        lte->Attach(device, cells.Get(0));
    }

    Ptr<LteHelper> lte = CreateObject<LteHelper>();
    NodeContainer enb{1}, node{1};
    Ptr<NetDevice> device;
};

} // namespace

// As with RelayAgent::SetModem: the device goes on measuring. Built with CXX='g++ -fsanitize=address', the case ends if
// it writes to what the modem has left.
CASE(a_modem_may_go_before_its_device)
{
    const Cell cell;
    anabranch::ModemOf(cell.device);
    const anabranch::Modem modem = anabranch::ModemOf(cell.device);
    EXPECT_OF(modem().granted.GetBitRate(), ==, 0U);
    Simulator::Stop(Seconds(1));
    Simulator::Run();
    EXPECT_OF(modem().granted.GetBitRate(), >, 1'000'000U);
}
