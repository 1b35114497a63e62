/** How a person started the last sessions. This browser remembers it for each person, so that the next session begins with it. */
import { browserChoice, keep, objectOr, readKept } from "../frame/kept.ts";
import { draftName } from "../projects/start.ts";
import type { Choice } from "./fitting.ts";

const NO_CHOICE: Choice = { base_ref: "", agent_name: "", agent_model: "", effort: "", mode: "" };

interface Remembered {
  /** The last used first. */
  readonly projects: readonly string[];
  readonly choices: Readonly<Record<string, Choice>>;
}

/** How many projects are remembered. */
const PROJECTS_MAX = 20;

const remembered = (person: string) =>
  browserChoice(`starts ${person}`, (kept) => objectOr<Remembered>(kept, { projects: [], choices: {} }));

/** Projects that the person used, the last one first. */
export const lastProjects = (person: string): readonly string[] => remembered(person).read().projects;

export const lastChoice = (person: string, project: string): Choice => ({
  ...NO_CHOICE,
  ...remembered(person).read().choices[project],
});

export const rememberChoice = (person: string, project: string, choice: Choice): void => {
  const before = remembered(person).read();
  const projects = [project, ...before.projects.filter((one) => one !== project)].slice(0, PROJECTS_MAX);
  const choices = { ...before.choices, [project]: choice };
  const kept = Object.fromEntries(Object.entries(choices).filter(([one]) => projects.includes(one)));
  remembered(person).keep({ projects, choices: kept });
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
