/**
 * The main job, step by step: a signed push arrives, a session follows the prompt, a change request shows the result.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentAct, watchAgent } from "./agent.ts";
import { announce } from "./announcement.ts";
import type { Board } from "./board.ts";
import type { Client, ServerEvent } from "./client.ts";
import { epochMs, type Narrator } from "./narrator.ts";
import { askSecondThing } from "./second-question.ts";
import type { Delivery } from "./sample.ts";

export interface Session {
  readonly id: string;
  readonly status: string;
  readonly branch_name: string;
  readonly base_commit: string | null;
  readonly agent_name: string;
  readonly running_at: string | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
}
interface Sandbox {
  readonly provider: string;
  readonly status: string;
  readonly created_at: string;
}

/** Milliseconds from sending the webhook to the end of each step. Null if a step left no trace. */
export interface BootTimes {
  readonly accepted: number;
  readonly branch: number | null;
  readonly sandbox: number | null;
  readonly clone: number | null;
  readonly runtime: number | null;
  readonly running: number | null;
  readonly commit: number;
}

/** The result of the demo, which is also the last line of `--once`. */
export interface Outcome {
  readonly session_id: string;
  readonly status: string;
  readonly branch: string;
  readonly commit: string;
  readonly change_request: number;
  readonly sandbox_provider: string;
  readonly agent_runtime: string;
  readonly boot_ms: BootTimes;
}

export interface Journey {
  readonly client: Client;
  readonly narrator: Narrator;
  readonly projectId: string;
  /** The server behind the project's connector. */
  readonly board: Board;
  /** Names the step of the journey in its failures. */
  readonly step: <A>(name: string, work: () => Promise<A>) => Promise<A>;
}

const TRIGGER = "on-push";
/** A real model thinks for a while. A boot has a deadline of its own. */
const AGENT_DEADLINE_MS = 10 * 60 * 1000;
const LOOK_MS = 100;
/** How much of an agent's command or sentence fits a terminal's line beside the time. */
const LINE_LENGTH = 90;

/** Runs from the webhook to the change request, a second question and a tool call that a person approves. */
export const travel = async (journey: Journey, delivery: Delivery): Promise<Outcome> => {
  const { client, narrator, projectId, board, step } = journey;
  const events = client.events(projectId);
  // The stream is open before anything can happen.
  await step("following the project's events", () => events.next());

  const sentAt = epochMs();
  const sessionId = await step("sending the webhook", () => deliver(journey, delivery));
  const acceptedAt = epochMs();
  narrator.say(
    "webhook",
    `GitHub push by ${delivery.pusher} to ${delivery.repository}, signed: 202, session ${sessionId}`,
  );

  const path = `/v1/projects/${projectId}/sessions/${sessionId}`;
  await step("booting the session", () => awaitRunning(journey, { events, sessionId, sentAt }));
  const session = await step("reading the session", () => client.get<Session>(path));
  const sandbox = await step("reading the sandbox", () => client.get<Sandbox>(`${path}/sandbox`));

  const { commit, seenAt } = await step("waiting for the agent's commit", () =>
    awaitCommit(journey, session, sentAt),
  );
  const number = await step("opening the change request", () => openChangeRequest(journey, session));
  await step("asking the agent a second thing", () => askSecondThing(client, narrator, path));
  await step("approving a tool call", () =>
    announce({ client, narrator, board }, { projectId, sessionPath: path }),
  );
  const since = (at: number | null): number | null => (at === null ? null : Math.round(at - sentAt));
  const logged = bootSteps(await client.text("GET", `${path}/logs?follow=0`));
  return {
    session_id: sessionId,
    status: session.status,
    branch: session.branch_name,
    commit,
    change_request: number,
    sandbox_provider: sandbox.provider,
    agent_runtime: await step("asking the agent runtime for its version", () => runtimeVersion(client, path)),
    boot_ms: {
      accepted: Math.round(acceptedAt - sentAt),
      // A sandbox is requested as soon as the branch exists, and not before.
      branch: since(Date.parse(sandbox.created_at)),
      sandbox: since(logged.sandbox),
      clone: since(logged.clone),
      runtime: since(logged.runtime),
      running: since(session.running_at === null ? null : Date.parse(session.running_at)),
      commit: Math.round(seenAt - sentAt),
    },
  };
};

const deliver = async ({ client, projectId }: Journey, delivery: Delivery): Promise<string> => {
  const answer = await client.deliver<{ status: string; session_id?: string; reason?: string }>(
    `/v1/webhooks/projects/${projectId}/${TRIGGER}`,
    delivery,
  );
  if (answer.session_id !== undefined) return answer.session_id;
  throw new Error(
    `the fire is ${answer.status} (${answer.reason ?? "no reason given"}) and started no session`,
  );
};

/** Reports each change until the session runs. @throws the session's failure if it does not run. */
const awaitRunning = async (
  { narrator }: Journey,
  {
    events,
    sessionId,
    sentAt,
  }: { readonly events: AsyncGenerator<ServerEvent>; readonly sessionId: string; readonly sentAt: number },
): Promise<void> => {
  for await (const { type, at, session_id, data } of events) {
    if (session_id !== sessionId || (type !== "session.status" && type !== "sandbox.status")) continue;
    const status = String(data["status"]);
    narrator.say(type === "session.status" ? "session" : "sandbox", status, {
      at: Date.parse(at),
      origin: sentAt,
    });
    if (type !== "session.status" || status === "provisioning") continue;
    if (status === "running") return;
    const failure = data["failure"] as Session["failure"];
    throw new Error(failure === null ? `the session is ${status}` : `${failure.code}: ${failure.message}`);
  }
};

interface Pushed {
  readonly commit: string;
  readonly seenAt: number;
}

/** Reports the agent's actions until it has pushed and is idle. */
const awaitCommit = async (
  { client, narrator, projectId }: Journey,
  session: Session,
  sentAt: number,
): Promise<Pushed> => {
  const deadline = epochMs() + AGENT_DEADLINE_MS;
  const agent = watchAgent(client, `/v1/projects/${projectId}/sessions/${session.id}/runtime`, session.id);
  let pushed: Pushed | null = null as Pushed | null;
  while (epochMs() < deadline) {
    // eslint-disable-next-line no-await-in-loop -- it looks again and again, in order
    const { acts, atRest } = await agent.look();
    for (const act of acts) narrator.say("agent", describe(act), { at: act.at, origin: sentAt });
    // eslint-disable-next-line no-await-in-loop
    const tip = await client.branchTip(projectId, session.branch_name);
    if (tip !== null && tip !== session.base_commit && tip !== pushed?.commit) {
      pushed = { commit: tip, seenAt: epochMs() };
      narrator.say("commit", `${tip} on the session branch`, { at: pushed.seenAt, origin: sentAt });
    }
    if (atRest && pushed !== null) return pushed;
    if (atRest) {
      throw new Error(`the agent ended its turn without a push; it said: ${acts.at(-1)?.text ?? "nothing"}`);
    }
    // eslint-disable-next-line no-await-in-loop
    await delay(LOOK_MS);
  }
  throw new Error(`the agent pushed no commit within ${String(AGENT_DEADLINE_MS / 60_000)} minutes`);
};

const describe = ({ tool, text }: AgentAct): string => {
  const [first = ""] = text.trim().split("\n");
  const line = first.length > LINE_LENGTH ? `${first.slice(0, LINE_LENGTH)}…` : first;
  return tool === null ? `says: ${line}` : `${tool}: ${line}`;
};

const openChangeRequest = async ({ client, narrator, projectId }: Journey, session: Session) => {
  const path = `/v1/projects/${projectId}/change-requests`;
  const { number } = await client.send<{ number: number }>("POST", path, {
    session_id: session.id,
    title: "Note the push",
  });
  const change = await client.get<{ base_ref: string; mergeable: boolean }>(`${path}/${String(number)}`);
  const diff = await client.text("GET", `${path}/${String(number)}/diff`);
  const merges = change.mergeable ? "merges without conflicts" : "conflicts";
  narrator.say("change request", `#${String(number)} into ${change.base_ref}, ${merges}:`);
  narrator.plain("");
  narrator.diff(diff);
  narrator.plain("");
  return number;
};

const runtimeVersion = async (client: Client, path: string): Promise<string> => {
  const { version } = await client.get<{ version: string }>(`${path}/runtime/global/health`);
  return `opencode ${version}`;
};

/** When the sandbox's daemon started, had cloned, and the agent runtime answered, from its log. */
export const bootSteps = (
  log: string,
): { readonly sandbox: number | null; readonly clone: number | null; readonly runtime: number | null } => {
  const when = (said: string): number | null => {
    const [, at] = new RegExp(`^(\\S+) daemon ${said}(?: |$)`, "m").exec(log) ?? [];
    return at === undefined ? null : Date.parse(at);
  };
  return {
    sandbox: when("listening"),
    clone: when("checked out"),
    runtime: when("agent runtime state=ready"),
  };
};

/** A delivery id in GitHub's form. */
export const newDeliveryId = (): string => randomUUID();
