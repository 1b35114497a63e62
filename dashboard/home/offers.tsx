/** The choices of a menu. What cannot be chosen is grey and says why. */
import type { Offer } from "./fitting.ts";

export const offered = (value: string, words = value): Offer => ({ value, words, reason: null });

/** @param chosen stays, even if it is not offered now */
export const Offers = ({
  offers,
  chosen,
}: {
  readonly offers: readonly Offer[];
  readonly chosen: string;
}) => {
  const isOffered = offers.some(({ value }) => value === chosen);
  return (isOffered ? offers : [offered(chosen), ...offers]).map(({ value, words, reason }) => (
    <option key={value} value={value} disabled={reason !== null} title={reason ?? undefined}>
      {reason === null ? words : `${words}: ${reason}`}
    </option>
  ));
};
