/** The filters of a list. Where there is little room they are folded away, so that the list begins high up. */
import { type ReactNode, useId, useState } from "react";
import { PHONE, useMedia } from "./media.ts";

/** A button that shows the fields, or hides them again. They stay shown, without a button, while something narrows the list. @param id of the fields */
export const useFold = (id: string, isNarrowed: boolean) => {
  const [isOpen, setOpen] = useState(isNarrowed);
  const isShown = isOpen || isNarrowed;
  return {
    isShown,
    button: !isNarrowed && (
      <button
        type="button"
        className="plain"
        aria-expanded={isShown}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        Filter
      </button>
    ),
  };
};

interface Parts {
  readonly isNarrowed: boolean;
  /** Beside the fields, always shown. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

/** The fields of a list's filters in a line; on a phone below a button. */
export const ListFilters = ({ isNarrowed, aside, children }: Parts) => {
  const isPhone = useMedia(PHONE);
  const id = useId();
  const { isShown, button } = useFold(id, isNarrowed);
  return (
    <div className="filters" id={id} role="group" aria-label="Filter">
      {isPhone && button}
      {(!isPhone || isShown) && children}
      {aside}
    </div>
  );
};
