/**
 * Writes src/machines/README.md from the machines themselves: `npm run diagrams`. A golden test compares it
 * (test/machines/diagrams.test.ts), so the page always matches the code.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AnyStateMachine } from "xstate";
import { FIRE_MOVES, FIRE_STATUSES } from "../src/domain/trigger/fire.ts";
import { accountMachine } from "../src/machines/account.ts";
import { agentRuntimeMachine } from "../src/machines/agent-runtime.ts";
import { approvalMachine } from "../src/features/approvals/machine.ts";
import { changeRequestMachine } from "../src/machines/change-request.ts";
import { conversationMachine } from "../src/machines/conversation.ts";
import { machineDefinition, type Arrow } from "../src/machines/definition.ts";
import { environmentBuildMachine } from "../src/machines/environment-build.ts";
import { sandboxMachine } from "../src/machines/sandbox.ts";
import { sessionMachine } from "../src/machines/session.ts";
import { triggerMachine } from "../src/machines/trigger.ts";

const MACHINES: readonly AnyStateMachine[] = [
  sessionMachine,
  sandboxMachine,
  triggerMachine,
  accountMachine,
  conversationMachine,
  changeRequestMachine,
  environmentBuildMachine,
  approvalMachine,
  agentRuntimeMachine,
];

const PAGE = fileURLToPath(new URL("../src/machines/README.md", import.meta.url));

const label = ({ event, guard }: Arrow): string => (guard === null ? event : `${event} [${guard}]`);

/** Mermaid, one line for each arrow. Only the table shows events that do not change the state. */
const diagram = (machine: AnyStateMachine): string => {
  const moves = machineDefinition(machine).arrows.filter(({ from, to }) => from !== to);
  const finals = Object.values(machine.states).filter(({ type }) => type === "final");
  return [
    "```mermaid",
    "stateDiagram-v2",
    `  [*] --> ${String(machine.config.initial)}`,
    ...moves.map((arrow) => `  ${arrow.from} --> ${arrow.to}: ${label(arrow)}`),
    ...finals.map(({ key }) => `  ${key} --> [*]`),
    "```",
  ].join("\n");
};

/** The effect of one event in one state. Empty if the machine refuses it. */
const cell = (arrows: readonly Arrow[]): string =>
  arrows
    .map(({ from, to, guard }) => {
      const outcome = from === to ? "stays" : to;
      return guard === null ? outcome : `${outcome} if ${guard}`;
    })
    .join("<br>");

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

const table = (machine: AnyStateMachine): string => {
  const arrows = machineDefinition(machine).arrows;
  const states = Object.keys(machine.states);
  const events = [...new Set(arrows.map(({ event }) => event))].toSorted();
  return [
    row(["event", ...states]),
    row(["---", ...states.map(() => "---")]),
    ...events.map((event) =>
      row([
        `\`${event}\``,
        ...states.map((state) =>
          cell(arrows.filter((arrow) => arrow.event === event && arrow.from === state)),
        ),
      ]),
    ),
  ].join("\n");
};

/** A fire is no actor: what moves it is a statement of the store, under the lock of its account. */
const fireSection = (): readonly string[] => {
  const froms = ["new", ...FIRE_STATUSES] as const;
  const arrows = froms.flatMap((from) =>
    FIRE_STATUSES.flatMap((to) => {
      const why = FIRE_MOVES[from][to];
      return why === undefined ? [] : [`  ${from === "new" ? "[*]" : from} --> ${to}: ${why}`];
    }),
  );
  const finals = FIRE_STATUSES.filter((status) => Object.keys(FIRE_MOVES[status]).length === 0);
  return [
    "## fire",
    "",
    "From the table of moves in `src/domain/trigger/fire.ts`. The stores refuse every other change of status.",
    "",
    "```mermaid",
    "stateDiagram-v2",
    ...arrows,
    ...finals.map((status) => `  ${status} --> [*]`),
    "```",
    "",
    row(["from", ...FIRE_STATUSES]),
    row(["---", ...FIRE_STATUSES.map(() => "---")]),
    ...froms.map((from) => row([`\`${from}\``, ...FIRE_STATUSES.map((to) => FIRE_MOVES[from][to] ?? "")])),
  ];
};

/** The whole page. */
export const machinesPage = (): string =>
  [
    "# Machines",
    "",
    "Generated from the machines by `npm run diagrams`; do not edit. Each diagram shows the events that lead to another",
    "state, each table every event in every state: an empty cell is a refusal. Conditions are tried from top to bottom.",
    ...MACHINES.flatMap((machine) => ["", `## ${machine.id}`, "", diagram(machine), "", table(machine)]),
    "",
    ...fireSection(),
    "",
  ].join("\n");

if (import.meta.main) writeFileSync(PAGE, machinesPage());
