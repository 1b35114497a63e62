/** How a person started the last sessions. This browser remembers it for each person, so that the next session begins with it. */
import { keep, readKept } from "../frame/kept.ts";
import { draftName } from "../projects/start.ts";

/** Empty strings: the project's own. The names are those of the API. */
export interface Choice {
  readonly base_ref: string;
  readonly agent_name: string;
  readonly agent_model: string;
  readonly effort: string;
}

const NO_CHOICE: Choice = { base_ref: "", agent_name: "", agent_model: "", effort: "" };

interface Remembered {
  /** The last used first. */
  readonly projects: readonly string[];
  readonly choices: Readonly<Record<string, Choice>>;
}

/** How many projects are remembered. */
const PROJECTS_MAX = 20;

const nameOf = (person: string): string => `starts ${person}`;

const readRemembered = (person: string): Remembered => {
  try {
    return { projects: [], choices: {}, ...JSON.parse(localStorage.getItem(nameOf(person)) ?? "{}") };
  } catch {
    return { projects: [], choices: {} };
  }
};

/** Projects that the person used, the last one first. */
export const lastProjects = (person: string): readonly string[] => readRemembered(person).projects;

export const lastChoice = (person: string, project: string): Choice => ({
  ...NO_CHOICE,
  ...readRemembered(person).choices[project],
});

export const rememberChoice = (person: string, project: string, choice: Choice): void => {
  const before = readRemembered(person);
  const projects = [project, ...before.projects.filter((one) => one !== project)].slice(0, PROJECTS_MAX);
  const choices = { ...before.choices, [project]: choice };
  const kept = Object.fromEntries(projects.map((one) => [one, choices[one]]));
  try {
    localStorage.setItem(nameOf(person), JSON.stringify({ projects, choices: kept }));
  } catch {
    // Where the storage is forbidden, each session begins with the project's own.
  }
};

/** The draft of the project's next session. The page of a new session has the same. */
export const readPrompt = (project: string): string => {
  const prompt: unknown = readKept(draftName(project))?.initial_prompt;
  return typeof prompt === "string" ? prompt : "";
};

/** @param prompt null: the session has started, and its draft goes */
export const keepPrompt = (project: string, prompt: string | null): void => {
  const name = draftName(project);
  const draft = prompt === null ? null : { ...readKept(name), initial_prompt: prompt };
  keep(name, draft);
};
