/**
 * The prompt and the choices of the next session, until it starts.
 *
 *  P1 Nothing typed is lost. The tab keeps the prompt until the session has started, and a reload does not lose it. With another
 *     project, it goes there.
 *  P2 A text that the service refused because of a secret is not kept, until the field was empty once.
 */
import { useRef, useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { keepPrompt, lastChoice, lastProjects, readPrompt, rememberChoice } from "./choices.ts";
import type { Choice } from "./fitting.ts";

export type Project = Answer<"GET /v1/projects">["projects"][number];

/** The prompt and the choices of the next session, as the browser keeps them. */
export const useDraft = (person: string, projects: readonly Project[]) => {
  const remembered = lastProjects(person).find((id) => projects.some((project) => project.id === id));
  const [chosen, setChosen] = useState(remembered);
  // A project may be archived meanwhile.
  const projectId = projects.find(({ id }) => id === chosen)?.id ?? projects[0]?.id ?? "";
  const [text, setText] = useState(() => readPrompt(projectId));
  const [choice, setChoice] = useState(() => lastChoice(person, projectId));
  const isSecret = useRef(false);
  const write = (next: string): void => {
    if (next === "") isSecret.current = false;
    setText(next);
    keepPrompt(projectId, isSecret.current ? "" : next);
  };
  return {
    projectId,
    text,
    choice,
    write,
    choose: (next: Choice): void => {
      setChoice(next);
      rememberChoice(person, projectId, next);
    },
    /** P1: the text moves, to what was typed for that project before. */
    moveTo: (id: string): void => {
      const next = [text, readPrompt(id)].filter((words) => words !== "").join("\n\n");
      keepPrompt(projectId, "");
      keepPrompt(id, isSecret.current ? "" : next);
      setText(next);
      setChosen(id);
      setChoice(lastChoice(person, id));
      rememberChoice(person, id, lastChoice(person, id));
    },
    /** The next session begins with the same. */
    remember: (): void => rememberChoice(person, projectId, choice),
    /** The session has started. */
    clear: (): void => keepPrompt(projectId, null),
    /** P2. */
    keepNoText: (): void => {
      isSecret.current = true;
      keepPrompt(projectId, "");
    },
  };
};

export type Draft = ReturnType<typeof useDraft>;

/** Files that are pasted, dropped or chosen. */
export const useFiles = () => {
  const [files, setFiles] = useState<readonly File[]>([]);
  return {
    files,
    add: (added: Iterable<File>): void => {
      // The list of an input is empty as soon as the input is.
      const more = [...added];
      setFiles((before) => [...before, ...more]);
    },
    remove: (index: number): void => setFiles((before) => before.filter((_, at) => at !== index)),
    empty: (): void => setFiles([]),
  };
};
