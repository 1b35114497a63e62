/** docs/operate/settings.md, from the definitions in src/settings/settings.ts. */
import { GROUPS, type Setting } from "../src/settings/setting.ts";
import { SETTINGS } from "../src/settings/settings.ts";

const MS_PER_UNIT = [
  ["days", 86_400_000],
  ["hours", 3_600_000],
  ["minutes", 60_000],
  ["seconds", 1000],
] as const;

/** `900000` as `15 minutes`. */
const spoken = (milliseconds: number): string => {
  for (const [unit, size] of MS_PER_UNIT) {
    const count = milliseconds / size;
    if (Number.isInteger(count)) return `${count} ${count === 1 ? unit.slice(0, -1) : unit}`;
  }
  return `${milliseconds} ms`;
};

const code = (text: string | number): string => `\`${text}\``;

const shownDefault = (setting: Setting): string => {
  if (setting.shown !== undefined) return setting.shown;
  if (setting.kind === "choice") return code(setting.values[0]);
  if (setting.kind === "list" || setting.kind === "hosts" || setting.fallback === null) return "none";
  if (setting.kind === "duration") return `${code(setting.fallback)} (${spoken(setting.fallback)})`;
  return code(setting.fallback);
};

const values = (setting: Setting): string => {
  switch (setting.kind) {
    case "text":
      return "text";
    case "url":
      return "http(s) URL";
    case "structured":
      return setting.expects;
    case "integer":
      return `${setting.min} to ${setting.max}`;
    case "duration":
      return setting.min === 1 ? "milliseconds" : `milliseconds, from ${code(setting.min)}`;
    case "choice":
      return setting.values.map(code).join(", ");
    case "list":
      return setting.separator === "," ? "comma-separated list" : "colon-separated list";
    case "hosts":
      return setting.wildcards ? "hosts and `*.` domains, separated by commas" : "hosts, separated by commas";
  }
};

const HEADER = "| Setting | Default | Values | Description |\n| --- | --- | --- | --- |";

const row = ([name, setting]: readonly [string, Setting]): string =>
  `| ${[code(name), shownDefault(setting), values(setting), setting.about].join(" | ")} |`;

const section = (group: Setting["group"]): readonly string[] => {
  const all: readonly (readonly [string, Setting])[] = Object.entries(SETTINGS);
  const rows = all.filter(([, setting]) => setting.group === group).map(row);
  return ["", `## ${group}`, "", HEADER, ...rows];
};

/** The whole page. */
export const settingsPage = (): string =>
  [
    "# Settings",
    "",
    "Generated from `src/settings/settings.ts` by `npm run docs`; do not edit.",
    "",
    "The service reads its settings from environment variables at start. An empty variable counts as absent. If a value is",
    "wrong, the service does not start: it prints the setting, the value, and what it expects. Times are whole milliseconds,",
    "from 1 to one year. The operator's commands (`platform admin`, `backup`, `restore`, `images`, `doctor`) read the same settings.",
    "A name that is nearly a setting's has no effect: the log of the start and `platform doctor` name the setting that may be meant.",
    ...GROUPS.flatMap(section),
    "",
  ].join("\n");
