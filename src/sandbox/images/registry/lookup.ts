/** Looks up the digest that a base image's tag has now, as a build would find it. */
import type { TaggedReference } from "../../../domain/environment/registry-reference.ts";
import { NetClient } from "../../../ground/net/client.ts";
import type { Network } from "../../../ground/net/dial.ts";
import { Refusal } from "../../egress-messages.ts";
import { type EgressPolicy, mayReach } from "../../egress-policy.ts";
import { type AskRegistry, Registry } from "./client.ts";

/** One look, with the request for a token, in milliseconds. */
const LOOK_MS = 15_000;

export interface LookOptions {
  /** Hosts that builds may reach. */
  readonly egressAllow: readonly string[];
  readonly ask: AskRegistry;
}

/** Sends requests over TLS to public addresses alone, as the egress proxy does for builds. */
export const publicRegistries = (network: Network = {}): AskRegistry => {
  const client = new NetClient({
    ...network,
    allowances: { hosts: new Set() },
    connectMs: 10_000,
    silentMs: LOOK_MS,
    connections: 8,
  });
  return (request) => client.request(request);
};

/** @throws RegistryFailure */
export const lookUp = (
  { host, repository, tag }: TaggedReference,
  { egressAllow, ask }: LookOptions,
): Promise<string> => {
  const policy: EgressPolicy = { allow: egressAllow, secretNames: [], serviceUrl: null, llmUpstream: null };
  const registry = new Registry({
    place: { origin: new URL(`https://${host}`), repository },
    rights: "pull",
    // Builds have no credentials for registries.
    credentials: null,
    ask: async (request) => {
      if (!mayReach(policy, request.url))
        throw new Refusal(403, `${request.url.hostname} is not on the list of allowed hosts`);
      return ask(request);
    },
  });
  return registry.tagDigest(tag, AbortSignal.timeout(LOOK_MS));
};
