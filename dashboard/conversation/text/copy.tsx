/** A button that copies a text. */
import { type ReactNode, useEffect, useState } from "react";
import { copyText } from "../../frame/actions.ts";
import { perform } from "../../frame/app.ts";
import { CopyIcon } from "../icons.tsx";

/** How long the button says that it did, ms. */
const SAID_MS = 2000;

/** @param what its name, e.g. "the code" */
export const CopyButton = ({ text, what }: { readonly text: string; readonly what: string }) => {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const saying = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(saying);
  }, [isCopied]);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setCopied(true);
  };
  return (
    <button
      type="button"
      className="copy-button"
      aria-label={isCopied ? "Copied" : `Copy ${what}`}
      title={isCopied ? "Copied" : `Copy ${what}`}
      onClick={() => void perform(copy)}
    >
      <CopyIcon isDone={isCopied} />
    </button>
  );
};

/** A text with a button in its corner that copies it. */
export const Copied = ({
  text,
  what,
  children,
}: {
  readonly text: string;
  readonly what: string;
  readonly children: ReactNode;
}) => (
  <div className="copied">
    {children}
    <CopyButton text={text} what={what} />
  </div>
);
