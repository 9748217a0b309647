// explain_style.css inside the program, so that a page needs no file beside it.
        .section .rodata
        .global couplet_explain_style
couplet_explain_style:
        .incbin "explain_style.css"
        .byte 0
        .section .note.GNU-stack, "", @progbits
