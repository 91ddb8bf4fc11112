// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over its own LTE link and those of phones on its Wi-Fi.
#include "phones.h"

int main(int argc, char** argv)
{
    phones::Setup setup;
    ns3::CommandLine command(__FILE__);
    command.AddValue("phones", "phones that lend their LTE link", setup.phones);
    command.AddValue("distance", "distance of the devices from the eNBs, m", setup.distanceM);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", setup.settings);
    command.Parse(argc, argv);
    std::cout << setup.phones << " phones: " << phones::Run(setup) << " Mbit/s" << std::endl;
}
