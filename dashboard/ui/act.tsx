/** Buttons that do something. */
import { type ReactNode, type RefObject, useLayoutEffect, useRef } from "react";
import { perform } from "../frame/app.ts";
import { lackedRole } from "../frame/roles.ts";

/** A button that disappears leaves the focus at the page's beginning, not outside of it. */
const useFocusKept = (button: RefObject<HTMLButtonElement | null>): void => {
  useLayoutEffect(() => {
    const { current } = button;
    return () => {
      if (document.activeElement === current) document.getElementById("main")?.focus({ preventScroll: true });
    };
  }, [button]);
};

interface Act {
  readonly label: string;
  /** What it acts on, read aloud after the label. Without it, the page has one such thing. */
  readonly about?: string;
  readonly does: () => Promise<void>;
  readonly className?: string;
}

export const Act = ({ label, about, does, className = "plain" }: Act) => {
  const button = useRef<HTMLButtonElement>(null);
  const isBusy = useRef(false);
  useFocusKept(button);
  const press = async (): Promise<void> => {
    // A second press while the first is under way means the same.
    if (isBusy.current) return;
    isBusy.current = true;
    await perform(does);
    isBusy.current = false;
  };
  return (
    <button
      ref={button}
      type="button"
      className={className}
      aria-label={about === undefined ? undefined : `${label}: ${about}`}
      onClick={() => void press()}
    >
      {label}
    </button>
  );
};

interface FrameAct {
  /** An entry of frame/actions.ts. */
  readonly name: string;
  /** What the entry acts on: the button's `data-` attributes. */
  readonly input: Readonly<Record<string, string>>;
  /** The id of the element that says why it cannot be pressed. */
  readonly prevented?: string | undefined;
  readonly title?: string;
  /** Its name, if that is more than what it shows. */
  readonly label?: string;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

const FrameButton = ({ name, input, prevented, title, label, className, children }: FrameAct) => {
  const button = useRef<HTMLButtonElement>(null);
  useFocusKept(button);
  const data = Object.fromEntries(Object.entries(input).map(([key, value]) => [`data-${key}`, value]));
  return (
    <button
      {...data}
      ref={button}
      type="button"
      className={className}
      data-action={name}
      aria-label={label}
      disabled={prevented !== undefined}
      aria-describedby={prevented}
      title={title}
    >
      {children}
    </button>
  );
};

/** A button for an action that the frame has for several pages. Readers whose role forbids it have none: the project's head says so. */
export const FrameAct = (act: FrameAct) => (lackedRole(act.name) === null ? <FrameButton {...act} /> : null);

/** `Act` for what a role may forbid. @param props `entry`: one of roles.ts */
export const RoleAct = ({ entry, ...act }: Act & { readonly entry: string }) =>
  lackedRole(entry) === null ? <Act {...act} /> : null;
