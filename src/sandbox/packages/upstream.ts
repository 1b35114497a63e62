/**
 * Requests to registries, for sandboxes (src/ground/net/client.ts): only a host that the operator allows may have a private
 * address, or plain HTTP, and credentials go to the origin for which the sandbox gave them.
 */
import type { IncomingHttpHeaders } from "node:http";
import { trustedHosts } from "../../ground/net/address.ts";
import { NetClient } from "../../ground/net/client.ts";
import type { Network } from "../../ground/net/dial.ts";

export interface UpstreamOptions {
  /** Hosts that may have a private address, or plain HTTP: those of the registries that the operator named. */
  readonly allowHosts: readonly string[];
  readonly network?: Network;
}

/** The client for all registries. */
export const registryClient = ({ allowHosts, network }: UpstreamOptions): NetClient =>
  new NetClient({
    ...network,
    allowances: trustedHosts(allowHosts),
    connectMs: 10_000,
    silentMs: 60_000,
    connections: 128,
    keepAliveMs: 10_000,
  });

/** The headers with which a sandbox shows who it is. */
export const sandboxCredentials = ({
  authorization,
  cookie,
}: IncomingHttpHeaders): Record<string, string> => ({
  ...(authorization !== undefined && { authorization }),
  ...(cookie !== undefined && { cookie }),
});
