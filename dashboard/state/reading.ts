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
  readonly name: string;
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
  place: Pick<Shown, "steps" | "name">,
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

export const sessionState = async ([pid = "", sid = ""]: readonly string[]): Promise<Shown> => {
  const params = { pid, sid };
  const [steps, session] = await Promise.all([
    stepsTo(pid),
    request("GET /v1/projects/:pid/sessions/:sid", { params }),
  ]);
  const name = sessionName(session);
  return shown({ name, steps: [...steps, [name, projectLink(pid, `/sessions/${sid}`)]] }, [
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
  return shown({ name: slug, steps: [...steps, ["Triggers", projectLink(pid, "/triggers")], [slug, null]] }, [
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
  return shown({ name: `change request #${number}`, steps: [...steps, [`#${number}`, link]] }, [
    [
      "Change request",
      orNull(request("GET /v1/projects/:pid/change-requests/:number/machine", { params, query: query() })),
    ],
  ]);
};

export const accountState = (): Promise<Shown> =>
  shown({ name: "the account", steps: [["Account", "#/account"]] }, [
    ["Account", orNull(request("GET /v1/account/machine", { query: query() }))],
  ]);
