/** Where a person says what an agent should do, in which project, and starts it. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { ApiError } from "../api/api.ts";
import { perform } from "../frame/app.ts";
import {
  AttachButton,
  ComposerForm,
  enterKeyHint,
  FileChips,
  isSendKey,
  SendKeys,
} from "../composer/area.tsx";
import { commandsIn, offeredCommands, offeredFiles } from "../composer/completion.ts";
import { faultOfFiles } from "../composer/files.ts";
import { CompletingArea, useTyping } from "../composer/menu.tsx";
import { usePaths } from "../composer/paths.ts";
import { size } from "../elements/format.ts";
import { startIn, warmSandbox } from "../projects/start.ts";
import { projectLink } from "../elements/parts.ts";
import { given, Problem, type Refusal, toRefusal } from "../ui/form.tsx";
import { AgentLacks, Chips } from "./chips.tsx";
import { type Draft, type Project, useDraft, useFiles } from "./draft.ts";
import { NO_OPTIONS, runtimeOf } from "./fitting.ts";
import { optionsQuery, setupQuery } from "./options.ts";

/** Each refusal names its field. */
const NO_FIELDS: ReadonlySet<string> = new Set();

/** What the project lacks before an agent can work in it. */
const Lacks = ({ project }: { readonly project: Project }) => {
  const { data: setup } = useQuery(setupQuery(project.id));
  if (setup === undefined || setup === null) return null;
  const hasNoModel = setup.model.required && setup.model.source === null;
  if (!hasNoModel && !setup.repository.empty) return null;
  return (
    <p className="lacks">
      {setup.repository.empty
        ? `The repository of ${project.name} is empty. `
        : `${project.name} has no key for a model yet. `}
      <a href={projectLink(project.id, "/setup")}>Set up the project</a>
    </p>
  );
};

interface Composer {
  /** The reader's id. */
  readonly person: string;
  /** Where sessions can start, newest first. */
  readonly projects: readonly Project[];
}

/** Starts the session. A refusal stays until the next try. */
const useStart = (
  { projectId, text, choice, write, remember, clear, keepNoText }: Draft,
  { files, empty }: Pick<ReturnType<typeof useFiles>, "files" | "empty">,
) => {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isStarting, setStarting] = useState(false);
  const isEmpty = text.trim() === "" && files.length === 0;
  const fault = faultOfFiles([...files]);
  const start = async (): Promise<void> => {
    setStarting(true);
    setRefusal(null);
    try {
      remember();
      const typed = given({ ...choice, initial_prompt: text });
      const address = await startIn(projectId, typed, [...files]);
      clear();
      if (address === null) {
        // The row below says that it waits.
        write("");
        empty();
      } else location.hash = address;
    } catch (error) {
      // The frame shows the sign-in.
      if (error instanceof ApiError && error.status === 401) throw error;
      if (error instanceof ApiError && error.code === "secret_in_message") keepNoText();
      setRefusal(toRefusal(error));
    } finally {
      setStarting(false);
    }
  };
  return {
    isEmpty,
    fault,
    refusal,
    isStarting,
    start: () => {
      if (!isStarting && !isEmpty && fault === null) void perform(start);
    },
  };
};

/** What is offered while one types. No runtime runs yet: of its commands, those of the repository are known. */
const useOffers = ({ text, projectId, choice }: Draft) => {
  const typing = useTyping(text);
  const { sign, typed = "" } = typing.token ?? {};
  const { data: options } = useQuery(optionsQuery(projectId));
  const files = usePaths({ pid: projectId, ref: choice.base_ref }, sign !== undefined);
  const offer = useMemo(() => {
    if (sign === undefined) return null;
    if (sign === "@") return offeredFiles(files, typed);
    const { command_files: form = null } = runtimeOf(options ?? NO_OPTIONS, choice.agent_name) ?? {};
    const commands = offeredCommands(commandsIn(files, form), typed);
    return (
      commands && {
        ...commands,
        note: commands.note ?? "The agent's other commands are listed once it runs.",
      }
    );
  }, [sign, typed, files, options, choice.agent_name]);
  return { typing, offer };
};

const Prompt = ({
  draft,
  onAdd,
  onSend,
}: {
  readonly draft: Draft;
  readonly onAdd: (files: Iterable<File>) => void;
  readonly onSend: () => void;
}) => {
  const area = useRef<HTMLTextAreaElement>(null);
  const { text, write, projectId } = draft;
  const { typing, offer } = useOffers(draft);
  return (
    <>
      <label className="unseen" htmlFor="prompt">
        What should the agent do?
      </label>
      <CompletingArea
        typing={typing}
        offer={offer}
        area={area}
        id="prompt"
        value={text}
        placeholder="What should the agent do?"
        enterKeyHint={enterKeyHint()}
        aria-describedby="prompt-keys"
        onAdd={onAdd}
        onKeyDown={(event) => {
          if (!isSendKey(event)) return;
          event.preventDefault();
          onSend();
        }}
        write={(next) => {
          write(next);
          warmSandbox(projectId);
        }}
      />
    </>
  );
};

export const Composer = ({ person, projects }: Composer) => {
  const draft = useDraft(person, projects);
  const { files, add, remove, empty } = useFiles();
  const { isEmpty, fault, refusal, isStarting, start } = useStart(draft, { files, empty });
  const project = projects.find(({ id }) => id === draft.projectId);
  if (project === undefined) return null;
  return (
    <ComposerForm label="New session" className="start" isFilled={!isEmpty} onAdd={add} onSubmit={start}>
      <Prompt draft={draft} onAdd={add} onSend={start} />
      <FileChips
        files={files.map(({ name, size: bytes }, at) => ({
          key: at,
          name,
          state: size(bytes),
          problem: null,
        }))}
        onRemove={(at) => remove(Number(at))}
      />
      {fault !== null && (
        <p className="refusal composer-problem" role="alert">
          {fault}
        </p>
      )}
      {refusal !== null && <Problem refusal={refusal} names={NO_FIELDS} />}
      <Lacks project={project} />
      <AgentLacks project={project} draft={draft} />
      <div className="composer-bar">
        <Chips projects={projects} project={project} draft={draft} />
        <AttachButton className="quiet-button" onAdd={add} />
        <a className="quiet" href={projectLink(project.id, "/new")}>
          More options
        </a>
        <span className="composer-buttons">
          <SendKeys id="prompt-keys" />
          {/* It is not disabled while the answer is awaited, because it would lose the focus. */}
          <button
            type="submit"
            className="primary"
            disabled={isEmpty || fault !== null}
            aria-disabled={isStarting}
          >
            {isStarting ? "Starting…" : "Start"}
          </button>
        </span>
      </div>
    </ComposerForm>
  );
};
