/** The composer of a conversation. */
import { type KeyboardEvent, type ReactNode, useMemo, useRef } from "react";
import { useFocusKept } from "../conversation/focus.ts";
import { size } from "../elements/format.ts";
import { Prose } from "../ui/parts.tsx";
import { useStore } from "../ui/store.ts";
import { AttachButton, ComposerForm, enterKeyHint, FileChips, isSendKey, SendKeys } from "./area.tsx";
import { Choices, ChoicesButton, useModels } from "./choices.tsx";
import { type Offer, offeredCommands, offeredFiles } from "./completion.ts";
import { CompletingArea, useTyping } from "./menu.tsx";
import { placeOfSession, usePaths } from "./paths.ts";
import { type Button, buttonsAt, type Moment, placeholderOf } from "./rules.ts";
import type { Writing } from "./writing.ts";

interface ComposerParts {
  /** Of the session in the API. */
  readonly path: string;
  readonly writing: Writing;
  readonly moment: Moment;
  readonly onStop: () => void;
  /** The text of the reader's last message. */
  readonly lastOwn: () => string | null;
  /** Beside the model. */
  readonly meter: ReactNode;
}

const DoButton = ({
  button: { does, label, explanation },
  writing,
  moment,
  onStop,
}: Pick<ComposerParts, "writing" | "moment" | "onStop"> & { readonly button: Button }) => {
  const element = useRef<HTMLButtonElement>(null);
  useFocusKept(element, writing.area);
  const press = (): void => {
    if (does === "stop") onStop();
    else writing.send(does === "now" ? "interrupt" : "queue");
  };
  const isMain = does === "send";
  return (
    <button
      ref={element}
      type={isMain ? "submit" : "button"}
      className={isMain ? "primary" : does === "stop" ? "stop" : undefined}
      title={explanation}
      disabled={does !== "stop" && !writing.isSendable}
      aria-disabled={does === "stop" && moment.stopping ? true : undefined}
      onClick={isMain ? undefined : press}
    >
      {label}
    </button>
  );
};

/** The files of the message. The focus of a removed one goes on to the button that attaches. */
const useChips = ({ files }: Writing) => {
  const attach = useRef<HTMLButtonElement>(null);
  const chips = (
    <FileChips
      files={files.chosen.map(({ key, name, bytes, attachment, problem }) => ({
        key,
        name,
        state: attachment === null ? "uploading…" : size(bytes),
        problem,
      }))}
      onRemove={(key) => {
        files.remove(Number(key));
        attach.current?.focus();
      }}
    />
  );
  return { chips, button: <AttachButton ref={attach} onAdd={files.add} /> };
};

/** What is offered while one types. The choice of models has the commands: it is the same answer. */
const useOffers = (path: string, writing: Writing) => {
  const typing = useTyping(writing.text);
  const { sign, typed = "" } = typing.token ?? {};
  const models = useModels(path, writing.isChoosing || sign === "/");
  const files = usePaths(placeOfSession(path), sign === "@");
  const { listing, problem } = models;
  // An answer that grows draws the composer again and again, and there may be very many files.
  const offer = useMemo(() => {
    if (sign === undefined) return null;
    if (sign === "@") return offeredFiles(files, typed);
    return offeredCommands({ value: listing && (listing.commands ?? []), problem }, typed);
  }, [sign, typed, files, listing, problem]);
  return { typing, models, offer };
};

interface AreaParts extends Pick<ComposerParts, "writing" | "moment" | "lastOwn"> {
  readonly typing: ReturnType<typeof useTyping>;
  readonly offer: Offer | null;
}

const Area = ({ writing, moment, lastOwn, typing, offer }: AreaParts) => {
  const pressed = (event: KeyboardEvent): void => {
    // While an input method composes a character, the keys are its own.
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowUp" && writing.text === "") {
      const last = lastOwn();
      if (last === null) return;
      event.preventDefault();
      writing.putBack({ text: last });
    }
    if (!isSendKey(event)) return;
    event.preventDefault();
    void writing.submit();
  };
  return (
    <>
      <label className="unseen" htmlFor="message">
        Message
      </label>
      <CompletingArea
        typing={typing}
        offer={offer}
        area={writing.area}
        id="message"
        value={writing.text}
        placeholder={placeholderOf(moment)}
        enterKeyHint={enterKeyHint()}
        aria-describedby="message-keys"
        onAdd={writing.files.add}
        write={writing.write}
        onKeyDown={pressed}
      />
    </>
  );
};

export const Composer = ({ path, writing, moment, onStop, lastOwn, meter }: ComposerParts) => {
  useStore(writing);
  const { typing, models, offer } = useOffers(path, writing);
  const { chips, button } = useChips(writing);
  return (
    <ComposerForm
      label="Message to the agent"
      onAdd={writing.files.add}
      onSubmit={() => void writing.submit()}
    >
      <Area writing={writing} moment={moment} lastOwn={lastOwn} typing={typing} offer={offer} />
      {chips}
      <Choices models={models} writing={writing} moment={moment} />
      <div className="composer-bar">
        {button}
        <ChoicesButton models={models} writing={writing} moment={moment} />
        {meter}
        <div className="composer-buttons">
          <SendKeys id="message-keys" />
          {buttonsAt(moment, writing.files.ready.length > 0).map((one) => (
            <DoButton key={one.does} button={one} writing={writing} moment={moment} onStop={onStop} />
          ))}
        </div>
      </div>
    </ComposerForm>
  );
};

/** Why the last thing was not done. It is announced, so its element stays. */
export const Trouble = ({ writing }: { readonly writing: Writing }) => {
  useStore(writing);
  return (
    <p className="refusal composer-problem" role="alert">
      {writing.problem !== "" && <Prose text={writing.problem} />}
    </p>
  );
};
