/** The agents of projects, as the directory knows them. */
import * as Effect from "effect/Effect";
import { agentNamed, type Agent, type Agents } from "../../domain/agents/agents.ts";
import { Directory } from "../directory.ts";
import { type BrokenAgent, orBroken, Runtimes } from "./runtimes.ts";

const NONE: Agents = new Map();

/** The agents that the tables of the project's manifest define. Makes no request. */
export const knownAgents = Effect.fnUntraced(function* (
  projectId: string,
): Effect.fn.Return<Agents, never, Directory> {
  return (yield* Directory).known(projectId)?.manifest.agents ?? NONE;
});

/** The agent of a name in a project. Makes no request. */
export const knownAgent = Effect.fnUntraced(function* (
  projectId: string,
  name: string,
): Effect.fn.Return<Agent, BrokenAgent, Directory> {
  return yield* orBroken(name, agentNamed(yield* knownAgents(projectId), name, yield* Runtimes));
});

/** Whether people can talk to the agent of that name. An agent with an error takes what comes, until its start says so. */
export const takesMessages = (projectId: string, name: string): Effect.Effect<boolean, never, Directory> =>
  knownAgent(projectId, name).pipe(
    Effect.map(({ runtime }) => runtime.conversation),
    Effect.catchTag("BrokenAgent", () => Effect.succeed(true)),
  );
