// SPDX-License-Identifier: GPL-2.0-only
// Makes sockets for the applications of ns-3, which name it "anabranch::SocketFactory".
#pragma once

#include "host.h"

#include "ns3/socket-factory.h"

namespace anabranch {

class SocketFactory : public ns3::SocketFactory {
public:
    static ns3::TypeId GetTypeId();
    void SetHost(ns3::Ptr<Host> host);
    ns3::Ptr<ns3::Socket> CreateSocket() override;

protected:
    void DoDispose() override;

private:
    ns3::Ptr<Host> host;
    std::string settings;
};

} // namespace anabranch
