/** What a session says of its saved work, in words for a terminal. */
import { leftOutText } from "../../../domain/save/reasons.ts";
import { hasContents, runsWithoutSave } from "../../../domain/save/shown.ts";
import type { Answer } from "../../contract.ts";
import { timeToSecond } from "../../terminal.ts";
import { quantity } from "../../../domain/counted.ts";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;
type Saved = NonNullable<Session["saved"]>;
type LeftOut = Saved["pending"][number];
type Work = Pick<Saved, "files" | "commits">;

/** More are in the answer of `--json`. */
const LISTED = 20;

/** How many paths these stand for. */
export const pathCount = (paths: readonly LeftOut[]): number =>
  paths.reduce((sum, { count = 1 }) => sum + count, 0);

/** One line a path, with its reason. A line may stand for several paths of one class. */
export const leftOutLines = (paths: readonly LeftOut[]): readonly string[] => {
  const lines = paths
    .slice(0, LISTED)
    .map(
      ({ path, count = 1, ...why }) =>
        `${path}${count === 1 ? "" : ` and ${count - 1} more`}: ${leftOutText(why)}`,
    );
  const rest = pathCount(paths.slice(LISTED));
  return rest === 0 ? lines : [...lines, `and ${rest} more, see --json`];
};

const pathList = (paths: readonly LeftOut[]): string | null =>
  paths.length === 0 ? null : leftOutLines(paths).join("\n");

/** The content of a save that has neither files nor commits. */
const STAGED = "staged changes";

const contents = ({ files, commits }: Work): string =>
  [
    files > 0 && quantity(files, "changed file"),
    commits > 0 && `commits of ${quantity(commits, "branch", "branches")}`,
  ]
    .filter((part) => part !== false)
    .join(", ");

/** The saved work, and when it was saved. */
const savedText = (saved: Saved): string => {
  const at = saved.at === null ? "" : ` at ${timeToSecond(saved.at)}`;
  // A save of an earlier version is not counted, and has no time.
  const work = contents(saved) || (saved.at === null ? "a commit" : STAGED);
  if (saved.state === "complete")
    return hasContents(saved) ? `complete${at}: ${work}` : `nothing, all was pushed${at}`;
  const isUnderWay = saved.error === null && saved.pending.every(({ reason }) => reason === "not_stored_yet");
  const head = saved.state === "failed" ? "the last save failed" : isUnderWay ? "so far" : "not all";
  const storedText = hasContents(saved) ? `${work}${at}` : "nothing";
  const why =
    saved.error ?? (isUnderWay ? "a save stores one part after the other" : "some paths are missing");
  return `${head}: ${why}\nstored: ${storedText}`;
};

const earlierText = ({ earlier = [] }: Saved): string | null =>
  earlier.length === 0
    ? null
    : earlier
        .map(
          (save) =>
            `${save.id} at ${timeToSecond(save.at)}: ${contents(save) || STAGED}${save.node === undefined ? "" : `, on node ${save.node}`}`,
        )
        .join("\n");

/** The fields of a session's saved work. */
export const savedFields = (session: Session): readonly (readonly [string, string | null])[] => {
  const { saved } = session;
  return saved === null
    ? []
    : [
        [
          "saved",
          [savedText(saved), runsWithoutSave(session) && "this sandbox runs without it"]
            .filter((part) => part !== false)
            .join("\n"),
        ],
        ["not saved", pathList(saved.pending)],
        ["skipped", pathList(saved.skipped)],
        ["saved on node", saved.node],
        ["earlier saves", earlierText(saved)],
      ];
};

/** The fields of what the session's sandbox brought back. */
export const restoredFields = ({ restored }: Session): readonly (readonly [string, string | null])[] => {
  if (restored === null) return [];
  const { commits, files, refs, renamed, skipped, error, notes = [] } = restored;
  return [
    [
      "restored",
      [
        [
          quantity(files, "changed file"),
          ...(commits === 0 ? [] : [`${quantity(commits, "commit")} on the session's branch`]),
        ].join(", "),
        ...(refs.length === 0 ? [] : [`branches: ${refs.join(", ")}`]),
        ...renamed.map(({ path, as }) => `${path} as ${as}`),
      ].join("\n"),
    ],
    ["not restored", [error, pathList(skipped), ...notes].filter((part) => part !== null).join("\n") || null],
  ];
};

/** One word for a list. */
export const savedWord = ({ saved }: Session): string => {
  if (saved === null) return "-";
  return saved.pending.length === 0 ? saved.state : `${pathCount(saved.pending)} missing`;
};
