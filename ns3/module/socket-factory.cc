// SPDX-License-Identifier: GPL-2.0-only
#include "socket-factory.h"

#include "socket.h"

#include "ns3/string.h"

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(SocketFactory);

TypeId SocketFactory::GetTypeId()
{
    static TypeId id = TypeId("anabranch::SocketFactory")
                           .SetParent<ns3::SocketFactory>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<SocketFactory>()
                           .AddAttribute("Settings",
                                         "Settings of the sockets of this node, instead of the default of "
                                         "anabranch::Socket::Settings; empty for that.",
                                         StringValue(""),
                                         MakeStringAccessor(&SocketFactory::settings),
                                         MakeStringChecker());
    return id;
}

void SocketFactory::SetHost(Ptr<Host> of)
{
    host = of;
}

Ptr<ns3::Socket> SocketFactory::CreateSocket()
{
    const Ptr<Socket> socket = CreateObject<Socket>();
    socket->SetHost(host);
    if (!settings.empty())
        socket->SetAttribute("Settings", StringValue(settings));
    return socket;
}

void SocketFactory::DoDispose()
{
    host = nullptr;
    ns3::SocketFactory::DoDispose();
}

} // namespace anabranch
