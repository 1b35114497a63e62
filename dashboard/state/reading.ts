/** What the state pages read: the machines of a session, a trigger, a change request or the account. */
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { sessionName } from "../projects/project.ts";

export type Machine = Answer<"GET /v1/account/machine">;
export type Definition = Answer<"GET /v1/machines">["machines"][number];

type Step = readonly [label: string, link: string | null];

export interface Shown {
  /** Of the breadcrumbs. */
  readonly steps: readonly Step[];
  /** "Why …?", as a heading. */
  readonly title: string;
  /** The state in the words of its own page. Null: it has no other than those below. */
  readonly lead: string | null;
  readonly machines: readonly { readonly label: string; readonly machine: Machine }[];
  /** By the machine's name. */
  readonly definitions: ReadonlyMap<string, Definition>;
}

/** How many transitions a page begins with, and how many more each wish for more adds. */
const PART = 25;
/** The API gives no more. */
const MOST = 200;
let parts = 1;

/** A visit begins. */
export const beginVisit = (): void => {
  parts = 1;
};

/** The next reading has more of the history. */
export const wantMore = (): void => {
  parts += 1;
};

const query = () => ({ limit: Math.min(MOST, PART * parts) });

/** They do not change while the page is open. */
let asked: Promise<Answer<"GET /v1/machines">> | null = null;
const definitions = async (): Promise<Shown["definitions"]> => {
  asked ??= request("GET /v1/machines", {});
  try {
    const { machines } = await asked;
    return new Map(machines.map((machine) => [machine.name, machine]));
  } catch (error) {
    asked = null;
    throw error;
  }
};

/** @param read the machines by their labels. Null: it does not exist yet */
const shown = async (
  place: Pick<Shown, "steps" | "title" | "lead">,
  read: readonly (readonly [label: string, machine: Promise<Machine | null>])[],
): Promise<Shown> => {
  const [known, ...machines] = await Promise.all([
    definitions(),
    ...read.map(async ([label, machine]) => ({ label, machine: await machine })),
  ]);
  return {
    ...place,
    definitions: known,
    machines: machines.flatMap(({ label, machine }) => (machine === null ? [] : [{ label, machine }])),
  };
};

const stepsTo = async (pid: string): Promise<readonly Step[]> => {
  const { name } = await request("GET /v1/projects/:pid", { params: { pid } });
  return [
    ["Projects", "#/projects"],
    [name, projectLink(pid)],
  ];
};

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;

/** The words at the head of a session's page, in a sentence about it. */
const IS: Readonly<Record<Session["activity"], string>> = {
  queued: "is queued",
  starting: "is starting",
  working: "is working",
  needs_you: "needs you",
  ready_for_review: "is ready for review",
  resting: "rests",
  asleep: "is asleep",
  failed: "has failed",
  done: "is done",
};

/** What makes a session's word the right one. */
const leadOf = (session: Session): string => {
  const { activity, change_request: change, waits_for: wait, failure, last_turn: last } = session;
  const proposal = change === null ? null : `Change request #${String(change.number)} is ${change.status}`;
  const leads: Readonly<Record<Session["activity"], string>> = {
    queued: "It waits until the account has a free session.",
    starting: "Its sandbox starts. Then the agent gets the message.",
    working: "Its agent works on a message.",
    needs_you:
      wait?.kind === "work_unsaved"
        ? "Its work could not be saved, and it waits for a decision."
        : `Its agent waits for a person: ${wait?.text ?? ""}`,
    ready_for_review:
      change?.status === "open"
        ? `${proposal ?? ""}, and the agent has nothing to do.`
        : "Its branch has work that is not merged, and the agent has nothing to do.",
    resting: "Its agent has nothing to do, and no work waits for a review.",
    asleep: "Its sandbox has ended, and its work is saved. The next message starts another sandbox.",
    failed: failure?.message ?? last?.error?.message ?? "Its last turn did not end well.",
    done: proposal === null ? "Nothing is left to do." : `${proposal}, and nothing was pushed since.`,
  };
  return leads[activity];
};

export const sessionState = async ([pid = "", sid = ""]: readonly string[]): Promise<Shown> => {
  const params = { pid, sid };
  const [steps, session] = await Promise.all([
    stepsTo(pid),
    request("GET /v1/projects/:pid/sessions/:sid", { params }),
  ]);
  const name = sessionName(session);
  const place = {
    title: `Why “${name}” ${IS[session.activity]}`,
    lead: leadOf(session),
    steps: [...steps, [name, projectLink(pid, `/sessions/${sid}`)] as const],
  };
  return shown(place, [
    ["Session", orNull(request("GET /v1/projects/:pid/sessions/:sid/machine", { params, query: query() }))],
    [
      "Sandbox",
      orNull(request("GET /v1/projects/:pid/sessions/:sid/sandbox/machine", { params, query: query() })),
    ],
    [
      "Conversation",
      orNull(request("GET /v1/projects/:pid/sessions/:sid/conversation/machine", { params, query: query() })),
    ],
  ]);
};

/** @param part of an address */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

export const triggerState = async ([pid = "", encoded = ""]: readonly string[]): Promise<Shown> => {
  const slug = decoded(encoded);
  const steps = await stepsTo(pid);
  const place = {
    title: `Why “${slug}” fires or waits`,
    lead: null,
    steps: [...steps, ["Triggers", projectLink(pid, "/triggers")] as const, [slug, null] as const],
  };
  return shown(place, [
    [
      "Trigger",
      request("GET /v1/projects/:pid/triggers/:slug/machine", { params: { pid, slug }, query: query() }),
    ],
  ]);
};

export const changeRequestState = async ([pid = "", number = ""]: readonly string[]): Promise<Shown> => {
  const steps = await stepsTo(pid);
  const link = projectLink(pid, `/change-requests/${number}`);
  const params = { pid, number: Number(number) };
  const { title, status } = await request("GET /v1/projects/:pid/change-requests/:number", { params });
  const place = {
    title: `Why #${number} “${title}” is ${status}`,
    lead: null,
    steps: [...steps, [`#${number}`, link] as const],
  };
  return shown(place, [
    [
      "Change request",
      orNull(request("GET /v1/projects/:pid/change-requests/:number/machine", { params, query: query() })),
    ],
  ]);
};

export const accountState = (): Promise<Shown> =>
  shown(
    { title: "Why sessions of the account start or wait", lead: null, steps: [["Account", "#/account"]] },
    [["Account", orNull(request("GET /v1/account/machine", { query: query() }))]],
  );
