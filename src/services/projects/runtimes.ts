/** What the installation offers, and what a manifest's text makes of an agent's name. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { agentNamed, type Agent, type Agents } from "../../domain/agents/agents.ts";
import { offeredAgents } from "../../domain/manifest/manifest-agents.ts";
import { parseManifest } from "../../domain/manifest/manifest.ts";
import { OPENCODE } from "../../domain/runtimes/opencode.ts";
import { offeredRuntimes, type OfferedRuntimes } from "../../domain/runtimes/runtimes.ts";

/** What the installation offers (PLATFORM_AGENT_ADAPTER, PLATFORM_AGENT_COMMAND, PLATFORM_AGENT_RUNTIMES). */
export const Runtimes = Context.Reference<OfferedRuntimes>("platform/services/Runtimes", {
  defaultValue: () => offeredRuntimes({ adapter: OPENCODE.adapter, command: OPENCODE.command ?? [] }, []),
});

/** The agent cannot start: its table has an error. The message says which. */
export class BrokenAgent extends Schema.TaggedError<BrokenAgent>()("BrokenAgent", {
  message: Schema.String,
}) {}

/** The agents that a manifest's tables define, by the manifest in force. */
export const agentsIn = (manifest: { readonly text: string } | null, runtimes: OfferedRuntimes): Agents =>
  manifest === null
    ? new Map()
    : offeredAgents(parseManifest(Buffer.from(manifest.text)).agents, runtimes).agents;

/** Fails with the sentence. */
export const orBroken = (
  name: string,
  agent: Result.Result<Agent, string>,
): Effect.Effect<Agent, BrokenAgent> =>
  Result.isSuccess(agent)
    ? Effect.succeed(agent.success)
    : Effect.fail(new BrokenAgent({ message: `The agent ${name} has an error: ${agent.failure}` }));

/** The agent of a name by the manifest in force. */
export const agentIn = Effect.fnUntraced(function* (
  manifest: { readonly text: string } | null,
  name: string,
): Effect.fn.Return<Agent, BrokenAgent> {
  const runtimes = yield* Runtimes;
  return yield* orBroken(name, agentNamed(agentsIn(manifest, runtimes), name, runtimes));
});
