/** Describes the shape under the pointer. */
import type { Hit } from "../draw/shapes.ts"

export const Details = ({ hit }: { readonly hit: Hit | undefined }) => (
  <div class="details">
    {hit === undefined
      ? <p class="hint">Point at a shape to see what it is, including commands and their replies.</p>
      : (
        <>
          <b>{hit.title}</b>
          {hit.lines.map((line, index) => <code key={index}>{line}</code>)}
        </>
      )}
  </div>
)
