/** Saving a secret from a form (key-saving.ts). It stands apart, because all readers load the other part, without React. */
import { useState } from "react";
import { isKeyRefused, saveSecret, UNTRIED } from "./key-saving.ts";

/** A form's second button, once the provider has refused the key, and its way to save. */
export const useKeySaving = () => {
  const [isRefused, setRefused] = useState(false);
  const save: typeof saveSecret = async (place, secret, isUntried) => {
    try {
      const saved = await saveSecret(place, secret, isUntried);
      setRefused(false);
      return saved;
    } catch (error) {
      setRefused(isKeyRefused(error));
      throw error;
    }
  };
  return { other: isRefused ? UNTRIED : undefined, save };
};
